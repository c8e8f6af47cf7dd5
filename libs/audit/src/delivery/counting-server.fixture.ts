import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach } from 'vitest';

/** A server of this machine that counts the requests of each test, for names that begin to lead to it. */
export function countingServer(answer: string) {
  const counted = { port: 0, requests: 0 };
  const server = createServer((_, response) => {
    counted.requests += 1;
    response.end(answer);
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    counted.port = (server.address() as AddressInfo).port;
  });
  beforeEach(() => void (counted.requests = 0));
  afterAll(() => void server.close());
  return counted;
}
