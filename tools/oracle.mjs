// `npm run oracle [-- CASES [SEED]]`: asks Parley and a real Parse Server the same random questions, thousands of them.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [cases = '3000', seed] = process.argv.slice(2);
const partners = spawnSync(process.execPath, [join(root, 'tools', 'test-partners.mjs')], {
  stdio: 'inherit',
});
if (partners.status !== 0) process.exit(partners.status ?? 1);
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const run = spawnSync(
  process.execPath,
  [vitest, 'run', '--project', 'scenarios', 'test/e2e/parse-server/rights-oracle.e2e-spec.ts'],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ORACLE_CASES: cases, ...(seed && { ORACLE_SEED: seed }) },
  },
);
process.exit(run.status ?? 1);
