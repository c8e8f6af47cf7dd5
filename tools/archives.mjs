// `npm run archives`: everything that is handed out, in dist/packages, with its SBOMs and SHA256SUMS: the packages, the MCP bundle, the
// Helm chart and the documentation site. The same commit and the same Node make the same bytes, in whatever folder and at whatever time.
// `--only packages,chart` makes some of them.
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from './build/build.mjs';
import { makeBundle } from './mcpb.mjs';
import { pack } from './pack.mjs';
import { own, root } from './packages.mjs';
import { writeSboms } from './sbom.mjs';

export const out = join(root, 'dist/packages');

/** @returns {string} a .tar.gz of a folder without times, owners and the order of a disk */
function tarred(folder, file, name) {
  const parent = dirname(folder);
  const run = spawnSync(
    'tar',
    [
      '--create',
      '--format=ustar',
      '--sort=name',
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--mode=u=rwX,go=rX',
      `--transform=s,^${folder.slice(parent.length + 1)},${name},`,
      folder.slice(parent.length + 1),
    ],
    { cwd: parent, maxBuffer: 512 * 1_048_576 },
  );
  if (run.status !== 0) throw new Error(`tar ended with ${run.status}: ${String(run.stderr)}`);
  writeFileSync(file, gzipSync(run.stdout, { level: 9 }));
  return file;
}

function docs() {
  const run = spawnSync(process.execPath, [join(root, 'tools/docs.mjs')], { stdio: ['ignore', 2, 2] });
  if (run.status !== 0) throw new Error(`the documentation site ended with ${run.status}`);
  return tarred(
    join(root, 'tools/docs-site/dist/site'),
    join(out, `parley-docs-${own.version}.tar.gz`),
    'parley-docs',
  );
}

/** Each makes its archives. */
export const KINDS = {
  packages: async () => (await pack()).map(({ archive }) => archive),
  mcpb: () => [makeBundle()],
  chart: () => [
    tarred(join(root, 'deploy/helm/parley'), join(out, `parley-chart-${own.version}.tgz`), 'parley'),
  ],
  docs: () => [docs()],
  sbom: () => writeSboms(),
};

/** @returns {Promise<{ file: string, sha256: string }[]>} */
export async function makeArchives(kinds = Object.keys(KINDS)) {
  const built = kinds.every((kind) => kind === 'chart') ? 0 : build({ ifNeeded: true });
  if (built !== 0) throw new Error(`the build ended with ${built}`);
  mkdirSync(out, { recursive: true });
  const made = [];
  for (const kind of kinds) made.push(...(await KINDS[kind]()));
  const sums = made.map((path) => ({
    file: path.slice(out.length + 1),
    sha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
  }));
  writeFileSync(join(out, 'SHA256SUMS'), sums.map(({ file, sha256 }) => `${sha256}  ${file}\n`).join(''));
  return sums;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf('--only');
  const kinds = at < 0 ? Object.keys(KINDS) : (process.argv[at + 1] ?? '').split(',');
  const unknown = kinds.filter((kind) => !(kind in KINDS));
  if (unknown.length > 0) {
    console.error(`--only ${unknown.join(', ')}: there is ${Object.keys(KINDS).join(', ')}`);
    process.exit(2);
  }
  for (const { file, sha256 } of await makeArchives(kinds)) console.log(`${sha256}  ${file}`);
}
