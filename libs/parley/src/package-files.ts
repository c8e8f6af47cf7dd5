import { createHash } from 'node:crypto';
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
export function readBuiltPage(name: string): string {
  const folders = ['../pages/', '../../pages/', '../../../pages/', '../../../dist/pages/'].map((path) =>
    fileURLToPath(new URL(`${path}${name}/`, import.meta.url)),
  );
  return folders.find((folder) => existsSync(folder)) ?? folders[0] ?? '';
}

/**
 * The data file that the build made of a seed, for the embedded database to start with: parsing the seed and sending its rows takes
 * longer than the rest of a start. It is found by the content of the seed and the name of the database. Undefined: there is none,
 * which is the case for every seed but the demo's.
 */
export function readBuiltSeed(content: Buffer, database: string): string | undefined {
  const name = `${createHash('sha256').update(content).digest('hex')}-${database}.data`;
  return ['../seeds/', '../../../seeds/']
    .map((path) => fileURLToPath(new URL(`${path}${encodeURIComponent(name)}`, import.meta.url)))
    .find((file) => existsSync(file));
}
