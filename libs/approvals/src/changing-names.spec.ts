import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signedPost } from '#audit';

let server: Server;
let port: number;
let reached = 0;
beforeAll(async () => {
  server = createServer((_, response) => {
    reached += 1;
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());
beforeEach(() => (reached = 0));

describe('a webhook whose name begins to lead to this machine', () => {
  const post = (host: string, address: string) =>
    signedPost({
      url: `http://${host}:${port}/`,
      secret: 'a-secret',
      body: '{}',
      timeout: 5_000,
      stop: new AbortController().signal,
      resolve: () => Promise.resolve([address]),
    });

  it('is not called there', async () => {
    await expect(post('hooks.example', '127.0.0.1')).rejects.toThrow('the request failed');
    expect(reached).toBe(0);
  });

  it('is called where the operator named this machine', async () => {
    await post('localhost', '127.0.0.1');
    expect(reached).toBe(1);
  });
});
