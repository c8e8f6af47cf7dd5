import { rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';

/** Removes a unix socket that a crashed server left behind; anything else at the path stays. */
export async function removeAbandonedSocket(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isSocket()) return;
  const refused = await new Promise<boolean>((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
  if (refused) await rm(path, { force: true });
}
