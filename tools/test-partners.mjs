// Makes sure of the heavy test partners: installs those with a package.json and lockfile of their own, redis-server, nginx,
// Chromium, Helm, promtool, curl and openssl.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureChromium } from './chromium.mjs';
import { ensureHelm } from './helm.mjs';
import { ensureNginx } from './nginx.mjs';
import { ensureRedisServer } from './redis-server.mjs';
import { ensurePackage, runs } from './system-package.mjs';

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
/** What the READMEs of examples are followed with. @param {string} name @param {string[]} question */
const ensureProgram = (name, question) =>
  ensurePackage(name, () => runs(name, question), `${name} is missing: install the package \`${name}\``);
const programs = [ensureProgram('curl', ['--version']), ensureProgram('openssl', ['version'])];
const promtool = ensurePackage(
  'prometheus',
  () => runs('promtool', ['--version']),
  'promtool is missing: install the package `prometheus`',
);
const found = [ensureRedisServer(), ensureNginx(), ensureChromium(), ensureHelm(), promtool, ...programs];
for (const missing of found) {
  if (missing === null) continue;
  console.error(missing);
  status ||= 1;
}
process.exit(status);
