import { mkdtempSync, rmSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listen } from '../../tools/free-port.mjs';

const ends: (() => unknown)[] = [];

/** Has something end after the last test of the file that starts it, before what was started earlier. It may have ended already. */
export function endWithFile(end: () => unknown): void {
  ends.push(end);
}

/** For the end of each file (`started.setup.ts`). */
export async function endStarted(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** Has a server of a test listen. It ends with the file at the latest, and whatever is connected to it. */
export async function listenFor(server: Server) {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) =>
    sockets.add(socket.once('close', () => sockets.delete(socket))),
  );
  const port = await listen(server);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  endWithFile(close);
  return { port, origin: `http://127.0.0.1:${port}`, close };
}

/** A new folder for one file of tests. */
export function makeFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `parley-${name}-`));
  endWithFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
