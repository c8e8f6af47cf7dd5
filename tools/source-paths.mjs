// The `paths` of tsconfig.json for Vite, which follows them for every name but those that begin with `#`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** @returns {{ find: RegExp, replacement: string }[]} in the order in which the first that fits holds */
export function sourceAliases() {
  const text = readFileSync(join(root, 'tsconfig.json'), 'utf8');
  /** @type {{ compilerOptions: { paths: Record<string, [string]> } }} */
  const { compilerOptions } = JSON.parse(text.replaceAll(/^\s*\/\/.*/gm, ''));
  return Object.entries(compilerOptions.paths).map(([name, [file]]) => ({
    find: new RegExp(`^${name.replace('*', '([^/]+)')}$`),
    replacement: join(root, file.replace('*', '$1')),
  }));
}
