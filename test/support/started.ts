import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ends: (() => unknown)[] = [];

/** Has something end after the last test of the file that starts it, before what was started earlier. It may have ended already. */
export function endWithFile(end: () => unknown): void {
  ends.push(end);
}

/** For the end of each file (`started.setup.ts`). */
export async function endStarted(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** A new folder for one file of tests. */
export function makeFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `parley-${name}-`));
  endWithFile(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
