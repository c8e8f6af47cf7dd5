import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askForJson } from './bounded-json.js';

let server: Server;
let port: number;
let reached = 0;
beforeAll(async () => {
  server = createServer((_, response) => {
    reached += 1;
    response.end('{"keys":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());

it('does not ask this machine, or its link, under the name of an issuer', async () => {
  for (const address of ['127.0.0.1', '::1', '169.254.169.254']) {
    const asked = askForJson(`https://issuer.example:${port}/keys`, {
      resolve: () => Promise.resolve([address]),
    });
    await expect(asked).rejects.toThrow('EADDRFORBIDDEN');
  }
  expect(reached).toBe(0);
  expect(await askForJson(`http://localhost:${port}/keys`)).toEqual({ status: 200, value: { keys: [] } });
});
