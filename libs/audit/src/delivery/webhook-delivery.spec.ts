import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startCountingServer } from './deliveries.fixture.js';
import { errorName } from './record-delivery.js';
import { postSigned, WebhookDelivery } from './sink-writers.js';

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

describe('a webhook that does not take records', () => {
  it('is said by the status of its answer, or by why none came', async () => {
    const server = createServer((_, response) => void response.writeHead(403).end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const failure = () =>
      new WebhookDelivery({ url: `http://127.0.0.1:${port}/KEY`, secret: 'a-secret', timeout: 5_000 })
        .deliver([])
        .then(() => 'delivered', errorName);
    await expect(failure()).resolves.toBe('answered 403');
    await new Promise((resolve) => server.close(resolve));
    await expect(failure()).resolves.toBe('nobody listens at its address, ECONNREFUSED');
  });
});
