import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Version of this package; so many folders up from the bundle, from the sources and from what was compiled of them. */
export function productVersion(): string {
  for (const candidate of ['../../package.json', '../../../package.json', '../../../../package.json']) {
    try {
      const manifest = JSON.parse(readFileSync(new URL(candidate, import.meta.url), 'utf8')) as {
        name?: string;
        version?: string;
      };
      if (manifest.name === '@parley/server' && manifest.version) return manifest.version;
    } catch {
      // Not there: the next candidate.
    }
  }
  return '0.0.0';
}

/** The folder that a page for browsers was built into; found from the sources and from what was built of them. */
export function builtPage(name: string): string {
  const folders = ['../pages/', '../../pages/', '../../../pages/', '../../../dist/pages/'].map((path) =>
    fileURLToPath(new URL(`${path}${name}/`, import.meta.url)),
  );
  return folders.find((folder) => existsSync(folder)) ?? folders[0] ?? '';
}
