import { readFileSync } from 'node:fs';

/** Of this package; so many folders up from the bundle, from the sources and from what was compiled of them. */
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
