// An application as `nest new` makes it, with the test runner of its template and nothing set up for Parley.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OutsideFolder } from './outside-folder.mjs';

const APPLICATION = fileURLToPath(new URL('application', import.meta.url));
const SPEC = fileURLToPath(new URL('template/invoices.spec.ts', import.meta.url));

/** Of the template's tools only those that its tests need: linters and the like would only take time to install. */
const OF_TESTS =
  /^(@nestjs\/testing|@types\/(express|jest|node)|jest|ts-jest|ts-node|typescript|vite-tsconfig-paths|vitest)$/;

const ANSWERS = {
  name: 'fresh',
  version: '0.0.1',
  description: '',
  author: '',
  strict: 'true',
  specFileSuffix: 'spec',
};

/** The templates use no more of their language than names and a condition that is false here. */
const rendered = (text) =>
  text
    .replace(/<% if \([^)]*\) \{ %>[\s\S]*?<% \} %>/g, '')
    .replace(/<%= (\w+) %>/g, (_, name) => ANSWERS[name]);

/** The templates of a major, fetched once for each application. */
function schematicsIn(folder, range) {
  const packed = spawnSync('npm', ['pack', `@nestjs/schematics@${range}`, '--silent', '--prefer-offline'], {
    cwd: folder,
    encoding: 'utf8',
  });
  const archive = packed.stdout.trim().split('\n').at(-1);
  if (packed.status !== 0 || !archive) throw new Error(`npm pack of the templates failed: ${packed.stderr}`);
  spawnSync('tar', ['xzf', archive], { cwd: folder });
  return join(folder, 'package/dist/lib/application/files');
}

export class TemplateApplication extends OutsideFolder {
  /**
   * @param {{ range: string, template: 'ts' | 'ts-esm', without?: string[], dependencies: Record<string, string> }} setting
   */
  constructor({ range, template, without = [], dependencies }) {
    super();
    const files = join(schematicsIn(this.folder, range), template);
    for (const name of ['package.json', 'tsconfig.json', 'jest.config.ts', 'vitest.config.ts'])
      if (existsSync(join(files, name)))
        writeFileSync(join(this.folder, name), rendered(readFileSync(join(files, name), 'utf8')));
    rmSync(join(this.folder, 'package'), { recursive: true });
    const manifest = JSON.parse(readFileSync(join(this.folder, 'package.json'), 'utf8'));
    const kept = Object.entries(manifest.devDependencies).filter(([name]) => OF_TESTS.test(name));
    manifest.devDependencies = Object.fromEntries(kept);
    manifest.dependencies = { ...manifest.dependencies, ...dependencies };
    for (const name of without) delete manifest.dependencies[name];
    this.write('package.json', manifest);
    mkdirSync(join(this.folder, 'src'));
    cpSync(join(APPLICATION, 'seed.json'), join(this.folder, 'seed.json'));
    for (const from of [join(APPLICATION, 'src/invoices.ts'), SPEC]) {
      const text = readFileSync(from, 'utf8');
      // A CommonJS template writes no extensions.
      const written = template === 'ts' ? text.replace(/'(\.\/\w+)\.js'/g, "'$1'") : text;
      writeFileSync(join(this.folder, 'src', basename(from)), written);
    }
  }

  test(node) {
    const npm = spawnSync('which', ['npm'], { encoding: 'utf8' }).stdout.trim();
    // A bound for what hangs: the usual one of Jest is five seconds, which a busy machine needs to start the service.
    return this.run(node, [npm, 'test', '--', '--testTimeout=60000']);
  }
}
