// Makes sure of the heavy test partners: installs those with a package.json and lockfile of their own, redis-server, nginx,
// Chromium, Helm, promtool, curl and openssl.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findChromium } from './chromium.mjs';
import { ensureHelm } from './helm.mjs';
import { ensureProgram } from './system-package.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
let status = 0;
/** Folders with packages of their own. The compilers of VitePress are optional packages, and so are the programs of Node. */
const PARTNERS = [
  { partner: 'test/oracles', options: ['--omit=optional'] },
  { partner: 'tools/conformance', options: ['--omit=optional'] },
  { partner: 'test/clients', options: ['--omit=optional'] },
  { partner: 'test/helm', options: ['--omit=optional'] },
  { partner: 'tools/docs-site', options: [] },
  { partner: 'test/nodes', options: [] },
];
for (const { partner, options } of PARTNERS) {
  const folder = join(root, partner);
  if (
    !existsSync(join(folder, 'package.json')) ||
    existsSync(join(folder, 'node_modules', '.package-lock.json'))
  )
    continue;
  console.log(`installing ${partner}`);
  const run = spawnSync('npm', ['ci', ...options, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
  status ||= run.status ?? 1;
}
const PROGRAMS = ['redis-server', 'nginx', 'promtool', 'curl', 'openssl'];
const found = [
  ...PROGRAMS.map((name) => ensureProgram(name)),
  ensureProgram('chromium', () => findChromium() !== undefined),
  ensureHelm(),
];
for (const missing of found) {
  if (missing === null) continue;
  console.error(missing);
  status ||= 1;
}
process.exit(status);
