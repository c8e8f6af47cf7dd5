// `npm run pack`: builds and makes dist/packages/NAME-VERSION.tgz of every package that is published. What goes in is put
// together beside the archives first, in dist/packages/node_modules, where one package also finds the other.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { declarationsOf, extractApi, surfacesOf } from './api.mjs';
import { build } from './build/build.mjs';
import { bundlePackage } from './build/bundle.mjs';
import { packages, root } from './packages.mjs';

const out = join(root, 'dist', 'packages');

/** @returns {Promise<{ name: string, archive: string }[]>} */
export async function pack() {
  // Other archives lie beside them.
  rmSync(join(out, 'node_modules'), { recursive: true, force: true });
  const archives = [];
  for (const one of packages) archives.push(await packed(one));
  return archives;
}

async function packed(one) {
  const manifest = one.manifest();
  const folder = join(out, 'node_modules', manifest.name);
  mkdirSync(join(folder, 'dist'), { recursive: true });
  if (one.bundle) await bundlePackage(join(root, 'dist', `${one.entry}.js`), join(folder, 'dist'));
  for (const [from, to] of Object.entries(one.files))
    cpSync(join(root, from), join(folder, to), {
      recursive: true,
      // It fits the Node that made it.
      filter: (path) => basename(path) !== '.code-cache',
    });
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  // A build begins with an empty dist: everything in it is of this build.
  for (const surface of surfacesOf(one)) {
    const declarations = declarationsOf(surface);
    if (!existsSync(declarations)) extractApi(surface);
    const name = basename(declarations);
    cpSync(declarations, join(folder, 'dist', name));
    // The same for those who `require`: a declaration file is of the kind of its name.
    cpSync(declarations, join(folder, 'dist', name.replace(/\.d\.ts$/, '.d.cts')));
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  // What the mask of a person or machine left out, everyone may read.
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
    if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o644);
  const run = spawnSync('npm', ['pack', folder, '--pack-destination', out, '--json', '--loglevel=error'], {
    cwd: out,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (run.status !== 0) throw new Error(`npm pack ended with ${run.status}`);
  const [{ filename, size, unpackedSize, entryCount }] = Object.values(JSON.parse(run.stdout));
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(0)} KiB`;
  process.stderr.write(
    `${filename}: ${kilobytes(size)}, ${kilobytes(unpackedSize)} in ${entryCount} files\n`,
  );
  return { name: manifest.name, archive: join(out, filename) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = build();
  if (built !== 0) process.exit(built);
  for (const { archive } of await pack()) console.log(archive);
}
