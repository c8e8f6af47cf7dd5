// The scenario of clocks (test/e2e/operations/clocks.e2e-spec.ts) with clocks that jump for as long as is asked for.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runSpecs } from './support/spec-batches.mjs';

const SPEC = 'test/e2e/operations/clocks.e2e-spec.ts';
/** Seconds of the window of the limit that the scenario sets. */
const WINDOW = 3;

export const part = {
  title: 'Three replicas whose clocks differ by ten minutes and jump forward and back at random',
  minutes: 5,
  // `npm test` runs its scenario for as long.
  brief: 0,
};

export async function run({ minutes, seed, log, signal }) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-proof-clock-'));
  const figuresFile = join(folder, 'figures.json');
  try {
    const { failed } = await runSpecs([SPEC], {
      variables: {
        PROOF_SECONDS: String(Math.max(1, Math.round(minutes * 60))),
        PROOF_SEED: String(seed),
        PROOF_FIGURES: figuresFile,
      },
      // With little time the jumps alone: the scenario is one of `npm test` as well.
      ...(minutes < 1 && { only: 'clocks jump at random' }),
      log,
      signal,
    });
    const found = readFigures(figuresFile);
    const losses = found?.losses?.length > 0 ? found.losses : failed;
    const { jumps = 0, calls = 0, approvals = 0, sets = 0, tasks = 0, permitted = 0 } = found?.counts ?? {};
    return {
      losses,
      figures: [
        { name: 'jumps of a clock', value: jumps, unit: '', atLeast: 1 },
        { name: 'requests of one session', value: calls, unit: '', atLeast: 1 },
        { name: 'approvals decided at another replica', value: approvals, unit: '', atLeast: 1 },
        { name: 'change sets applied by several replicas', value: sets, unit: '', atLeast: 1 },
        { name: 'tasks that ended', value: tasks, unit: '', atLeast: 1 },
        { name: 'permitted calls of a limited principal', value: permitted, unit: '', atLeast: 1 },
        {
          name: 'longest refusal of a limited principal',
          value: Math.round(found?.longestWait ?? 0),
          unit: 'ms',
          atMost: (WINDOW + 1) * 1000,
        },
      ],
      series: [],
      notes: ['Clocks of machines jump by up to five minutes either way; that of Redis does not.'],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readFigures(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}
