import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Makes a server listen on a loopback port.
 * @param {import('node:net').Server} server
 * @param {number} wanted 0 takes a free one
 * @returns the port
 */
export async function listen(server, wanted = 0) {
  await once(server.listen(wanted, '127.0.0.1'), 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return port;
}

/** A loopback port on which nothing listens. */
export async function freePort() {
  const probe = createServer();
  const port = await listen(probe);
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
