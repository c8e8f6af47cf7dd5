// Builds the documentation site from docs/ into tools/docs-site/dist/site; with --preview it serves the result, with --watch the
// pages as they change, both on the port of --port. Its packages are installed before the first build; nothing else needs a network.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const site = fileURLToPath(new URL('docs-site/', import.meta.url));
const vitepress = `${site}node_modules/vitepress/bin/vitepress.js`;

/** @returns the exit status */
function run(command, ...args) {
  return spawnSync(command, args, { cwd: site, stdio: 'inherit' }).status ?? 1;
}

const asked = process.argv.slice(2);
const options = asked.filter((argument) => argument !== '--preview' && argument !== '--watch');
const watched = asked.includes('--watch');
const status =
  (existsSync(vitepress) ? 0 : run('npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error')) ||
  run(process.execPath, vitepress, ...(watched ? ['dev', '.', ...options] : ['build', '.'])) ||
  (asked.includes('--preview') ? run(process.execPath, vitepress, 'preview', '.', ...options) : 0);
process.exit(status);
