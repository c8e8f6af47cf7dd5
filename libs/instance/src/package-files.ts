import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Version of this package. It tries the folder depths of the bundle, of the sources and of their compiled form. */
export function productVersion(): string {
  for (const candidate of ['../../package.json', '../../../package.json', '../../../../package.json']) {
    try {
      const manifest = JSON.parse(readFileSync(new URL(candidate, import.meta.url), 'utf8')) as {
        name?: string;
        version?: string;
      };
      if (manifest.name === '@parley/server' && manifest.version) return manifest.version;
    } catch {
      // Not found: try the next candidate.
    }
  }
  return '0.0.0';
}

/** The folder with a built browser page, found from the sources and from the build. */
export function builtPage(name: string): string {
  const folders = ['../pages/', '../../pages/', '../../../pages/', '../../../dist/pages/'].map((path) =>
    fileURLToPath(new URL(`${path}${name}/`, import.meta.url)),
  );
  return folders.find((folder) => existsSync(folder)) ?? folders[0] ?? '';
}
