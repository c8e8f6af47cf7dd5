// `npm run example NAME[/PROGRAM]`: compiles one of examples/ and starts it (or another program of it), as its own package.json
// would, with the Parley of this checkout.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from './build/build.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const examples = join(root, 'examples');

function exampleNames() {
  return readdirSync(examples).filter((name) => existsSync(join(examples, name, 'package.json')));
}

/**
 * Its sources as JavaScript in dist/examples, from where `@parley/server` is the build of this checkout. Types are judged by
 * `npm run typecheck`, not here.
 * @returns the exit code of the compiler
 */
function compileExample(name) {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const output = join(root, 'dist', 'examples', name);
  const options = ['-p', join(examples, name), '--outDir', output, '--noCheck', '--noResolve'];
  const { status } = spawnSync(process.execPath, [compiler, ...options], { stdio: ['ignore', 2, 2] });
  return status ?? 1;
}

/** When the newest file below was written, in milliseconds; 0: there is none. */
function newest(folder) {
  if (!existsSync(folder)) return 0;
  const files = readdirSync(folder, { recursive: true });
  return Math.max(0, ...files.map((file) => statSync(join(folder, file)).mtimeMs));
}

const isCompiled = (name) =>
  newest(join(examples, name, 'src')) < newest(join(root, 'dist', 'examples', name));

async function start([asked = '', ...others]) {
  const [name, program = 'main'] = asked.split('/', 2);
  if (!exampleNames().includes(name)) {
    console.error(`npm run example NAME, where NAME is one of:\n  ${exampleNames().join('\n  ')}`);
    return 2;
  }
  const status = build({ ifNeeded: true }) || (isCompiled(name) ? 0 : compileExample(name));
  if (status !== 0) return status;
  process.chdir(join(examples, name));
  const main = join(root, 'dist', 'examples', name, `${program}.js`);
  process.argv = [process.execPath, main, ...others];
  await import(pathToFileURL(main).href);
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const status = await start(process.argv.slice(2));
  if (status !== 0) process.exit(status);
}
