// Modules of the project that are TypeScript and are not built (test support and contracts), for parts that are plain scripts.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { sourceAliases } from '../../../tools/source-paths.mjs';

export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** @param path of a module, from the root of the project */
export async function source(path) {
  const { module } = await runnerImport(join(root, path), {
    root,
    configFile: false,
    logLevel: 'error',
    resolve: { alias: sourceAliases() },
  });
  return module;
}
