// `npm run bench`: builds, then measures ratios in one run and prints a table; figures also go to bench-results.json.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const status = build({ ifNeeded: true });
if (status !== 0) process.exit(status);
const run = fileURLToPath(new URL('../test/bench/run.mjs', import.meta.url));
process.exit(spawnSync(process.execPath, [run, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1);
