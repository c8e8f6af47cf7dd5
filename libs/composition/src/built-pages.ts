import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder that a page for browsers was built into; found from the sources and from what was built of them. */
export function builtPage(name: string): string {
  const folders = ['../pages/', '../../pages/', '../../../pages/', '../../../dist/pages/'].map((path) =>
    fileURLToPath(new URL(`${path}${name}/`, import.meta.url)),
  );
  return folders.find((folder) => existsSync(folder)) ?? folders[0] ?? '';
}
