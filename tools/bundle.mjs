// Joins what tsc built into few files, dist/bundle: reading hundreds of small modules is most of a start. dist/{src,libs} stay
// what the import table is checked on.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const dist = fileURLToPath(new URL('../dist', import.meta.url));
const embeddedMongo = fileURLToPath(new URL('../libs/embedded-mongo/dist', import.meta.url));

async function bundle(input, dir) {
  const bundled = await rolldown({
    input,
    platform: 'node',
    // Packages stay outside: plugins and applications must meet the same NestJS.
    external: (id) => !/^[.#/]|^@parley\/embedded-mongo$/.test(id) && !/^[A-Za-z]:[\\/]/.test(id),
    // Classes register themselves with decorators.
    treeshake: false,
    logLevel: 'warn',
  });
  await bundled.write({
    dir,
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    // Class names are part of audit records and log lines.
    keepNames: true,
    // A stack names files and lines; their text would be read at every start and kept.
    sourcemapExcludeSources: true,
  });
  await bundled.close();
}

/** One module of everything that a package holds. */
export const bundlePackage = (entry, dir) => bundle({ index: entry }, dir);

if (process.argv[1] === fileURLToPath(import.meta.url))
  await bundle(
    {
      main: join(dist, 'src/main.js'),
      cli: join(dist, 'src/cli/main.js'),
      parley: join(dist, 'libs/parley/src/index.js'),
      // A thread of its own, started by its file name.
      'server-worker': join(embeddedMongo, 'worker/server-worker.js'),
    },
    join(dist, 'bundle'),
  );
