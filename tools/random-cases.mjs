// The tests that take random cases, with many more of them than in a test run. `npm run properties [-- WORLDS [SEED]]`: policies, data,
// agents and requests. `npm run oracle [-- CASES [SEED]]`: asks Parley and a real Parse Server the same questions.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const KINDS = {
  properties: {
    specs: ['policy/nothing-shows', 'policy/permitted-answers', 'policy/listing-agrees'],
    variables: { count: 'PROPERTY_WORLDS', seed: 'PROPERTY_SEED' },
    usual: '200',
  },
  oracle: {
    specs: ['parse-server/rights-oracle'],
    variables: { count: 'ORACLE_CASES', seed: 'ORACLE_SEED' },
    usual: '3000',
  },
};

/** @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
function run(args, env = process.env) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env });
  if (status !== 0) process.exit(status ?? 1);
}

const [kind, count, seed] = process.argv.slice(2);
const { specs, variables, usual } = KINDS[kind];
if (kind === 'oracle') run([join('tools', 'test-partners.mjs')]);
run(
  [
    join('node_modules', 'vitest', 'vitest.mjs'),
    'run',
    '--project',
    'scenarios',
    ...specs.map((name) => `test/e2e/${name}.e2e-spec.ts`),
  ],
  { ...process.env, [variables.count]: count ?? usual, ...(seed && { [variables.seed]: seed }) },
);
