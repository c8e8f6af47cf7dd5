// `npm run properties [-- WORLDS [SEED]]`: random policies, data, agents and requests, in hundreds of worlds.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [worlds = '200', seed] = process.argv.slice(2);
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const specs = ['nothing-shows', 'permitted-answers', 'listing-agrees'].map(
  (name) => `test/e2e/policy/${name}.e2e-spec.ts`,
);
const run = spawnSync(process.execPath, [vitest, 'run', '--project', 'scenarios', ...specs], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PROPERTY_WORLDS: worlds, ...(seed && { PROPERTY_SEED: seed }) },
});
process.exit(run.status ?? 1);
