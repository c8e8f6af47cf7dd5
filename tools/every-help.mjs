// Asks every command and subcommand of the built `parley` for its help, which names those below it: in one process, because each start
// costs more than the help. Prints what is wrong, or "ok" at the end.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const bundle = fileURLToPath(new URL('../dist/bundle/programs.cjs', import.meta.url));
// What the bundle imports from outside of itself (src/launch/code-cache.ts).
Object.assign(globalThis, { importOutside: (/** @type {string} */ name) => import(name) });
const { programs } = require(bundle);
const print = process.stdout.write.bind(process.stdout);

/** @param {string[]} parents */
async function readHelp(parents) {
  const args = [...parents, '--help'];
  let said = '';
  process.stdout.write = (/** @type {unknown} */ text) => {
    said += String(text);
    return true;
  };
  process.argv.splice(2, Infinity, ...args);
  await programs.commands();
  const [, listed = ''] = said.split('Commands:');
  const names = [...listed.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name = '']) => name);
  if (process.exitCode || !/^Usage: parley /m.test(said)) print(`parley ${args.join(' ')}:\n${said}`);
  if (parents.length === 0 && names.length === 0) print('parley --help lists no command');
  process.exitCode = 0;
  for (const name of names) if (name !== 'help') await readHelp([...parents, name]);
}

await readHelp([]);
print('ok');
