// Each example as its README says that it can be copied: a project of its own, with the archives in the place of `@parley/*`.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OutsideFolder } from './outside-folder.mjs';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
/** What an example needs that is no package. */
const PROGRAMS = { 'behind-a-proxy': ['nginx', 'redis-server', 'openssl'] };

const isThere = (program) => spawnSync('which', [program]).status === 0;
const withArchives = (dependencies, archives) =>
  Object.fromEntries(
    Object.entries(dependencies).map(([name, version]) => [name, archives[name] ?? version]),
  );

/** @param {Record<string, string>} archives what stands for a version, by the name of the package */
export async function checkExamples(archives, check) {
  const names = readdirSync(EXAMPLES).filter((name) => existsSync(join(EXAMPLES, name, 'package.json')));
  for (const name of names) {
    const copy = new OutsideFolder();
    try {
      await checkExample(name, copy, archives, (what, holds, output) =>
        check(`example ${name}: ${what}`, holds, output),
      );
    } finally {
      copy.remove();
    }
  }
}

async function checkExample(name, copy, archives, checked) {
  const own = (path) => !/[\\/](node_modules|dist)$/.test(path);
  cpSync(join(EXAMPLES, name), copy.folder, { recursive: true, filter: own });
  const manifest = JSON.parse(readFileSync(join(copy.folder, 'package.json'), 'utf8'));
  for (const kind of ['dependencies', 'devDependencies'])
    manifest[kind] = withArchives(manifest[kind], archives);
  copy.write('package.json', manifest);

  const install = copy.install();
  if (!checked('installs outside the repository', install.status === 0, install.output)) return;
  const compiled = copy.run('npm', ['run', 'build']);
  if (!checked('compiles', compiled.status === 0, compiled.output)) return;
  if (manifest.scripts.test) {
    const tests = copy.run('npm', ['test']);
    checked('passes its tests', tests.status === 0, tests.output);
  }
  const missing = (PROGRAMS[name] ?? []).filter((program) => !isThere(program));
  if (missing.length > 0) {
    console.log(`     example ${name}: not started, ${missing.join(' and ')} not being here`);
    return;
  }
  const running = await copy.start(process.execPath, ['dist/main.js'], { env: { PORT: '0' } });
  if (!checked('starts', running.url !== null, running.output())) return;
  const code = await running.stop();
  checked('ends upon SIGTERM', code === 0 || code === null, running.output());
}
