import { describe, expect, it } from 'vitest';
import { startCountingServer } from './deliveries.fixture.js';
import { postSigned } from './sink-writers.js';

describe('a webhook whose name begins to lead to this machine', () => {
  const server = startCountingServer('{}');
  const post = (host: string, address: string) =>
    postSigned({
      url: `http://${host}:${server.port}/`,
      secret: 'a-secret',
      body: '{}',
      timeout: 5_000,
      stop: new AbortController().signal,
      resolve: () => Promise.resolve([address]),
    });

  it('is not called there', async () => {
    await expect(post('hooks.example', '127.0.0.1')).rejects.toThrow('the request failed');
    expect(server.requests).toBe(0);
  });

  it('is called where the operator named this machine', async () => {
    await post('localhost', '127.0.0.1');
    expect(server.requests).toBe(1);
  });
});
