// Random policies, data, agents and requests (test/properties): what is withheld changes nothing, what is permitted is answered.
import { casesWithin, runBatches } from './support/spec-batches.mjs';

export const part = {
  title: '2,000 random worlds of policies, rows and agents, with filters in shuffled order',
  minutes: 40,
  // `npm test` runs its scenarios for as long.
  brief: 0,
};

const FULL = 2_000;
const SPECS = ['nothing-shows', 'permitted-answers', 'listing-agrees'];

export async function run({ minutes, seed, log, signal }) {
  return runBatches({
    what: 'worlds',
    specs: SPECS.map((name) => `test/e2e/policy/${name}.e2e-spec.ts`),
    variables: (worlds, own) => ({ PROPERTY_WORLDS: String(worlds), PROPERTY_SEED: String(own) }),
    cases: casesWithin(FULL, minutes, part),
    first: 12,
    most: 250,
    minutes,
    seed,
    log,
    signal,
  });
}
