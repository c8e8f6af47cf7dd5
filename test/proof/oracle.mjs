// Random callers ask Parley and a real Parse Server the same questions (test/e2e/parse-server/rights-oracle.e2e-spec.ts).
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { casesWithin, runBatches } from './support/spec-batches.mjs';

export const part = {
  title: '10,000 random questions answered as by a real Parse Server',
  minutes: 6,
  // `npm test` runs its scenario for as long.
  brief: 0,
};

const FULL = 10_000;
const partners = fileURLToPath(new URL('../../tools/test-partners.mjs', import.meta.url));

export async function run({ minutes, seed, log, signal }) {
  const installed = spawnSync(process.execPath, [partners], { encoding: 'utf8' });
  if (installed.status !== 0) throw new Error(`Parse Server cannot be installed: ${installed.stderr}`);
  return runBatches({
    what: 'oracle questions',
    specs: ['test/e2e/parse-server/rights-oracle.e2e-spec.ts'],
    variables: (cases, own) => ({ ORACLE_CASES: String(cases), ORACLE_SEED: String(own) }),
    cases: casesWithin(FULL, minutes, part),
    first: 300,
    most: 2_500,
    minutes,
    seed,
    log,
    signal,
  });
}
