import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';

const toLockPath = (file: string): string => `${file}.lock`;

/** When this process started, in epoch seconds; the same in all its threads. */
const startedAt = Math.round(Date.now() / 1000 - process.uptime());

/** Reserves a file for this process. Errors: an Error when another process has it. */
export function takeLock(file: string): void {
  const lock = toLockPath(file);
  for (;;) {
    try {
      const fd = openSync(lock, 'wx', 0o600);
      writeSync(fd, `${process.pid} ${startedAt}`);
      closeSync(fd);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if (isHeld(lock)) {
        throw new Error(`the data file ${file} is in use; if no process uses it, remove ${lock}`, {
          cause: error,
        });
      }
      rmSync(lock, { force: true });
    }
  }
}

export function releaseLock(file: string): void {
  rmSync(toLockPath(file), { force: true });
}

/** A lock whose process is gone was left behind by a crash. */
function isHeld(lock: string): boolean {
  const [pid = 0, started = 0] = readFileSync(lock, 'utf8').split(' ').map(Number);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  // In a container the next process often has the number of the last one.
  if (pid === process.pid) return Math.abs(started - startedAt) <= 2;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
