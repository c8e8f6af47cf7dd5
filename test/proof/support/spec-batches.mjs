import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Longest part of an assertion's text that a loss repeats: the specs print the case in its first lines. */
const LONGEST = 3_000;

/**
 * Runs scenarios in a process of their own.
 * @param {string[]} specs
 * @param {object} options
 * @param {Record<string, string>} [options.variables] of their environment
 * @param {string} [options.only] part of the titles of tests: the others do not run
 * @param {(line: string) => void} [options.log] gets the line of each file and of each test that took long
 * @param {AbortSignal} [options.signal]
 * @returns {Promise<{ failed: string[], ran: number }>} what failed, as sentences, and how many tests passed or failed
 */
export async function runSpecs(specs, { variables = {}, only, log = () => undefined, signal }) {
  const folder = await mkdtemp(join(tmpdir(), 'parley-proof-'));
  const report = join(folder, 'report.json');
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile=${report}`];
  const options = ['--project', 'scenarios', '--maxWorkers=1', ...reporters, ...(only ? ['-t', only] : [])];
  try {
    const child = spawn(process.execPath, [vitest, 'run', ...options, ...specs], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...variables },
    });
    let complaints = '';
    child.stderr.on('data', (chunk) => (complaints = (complaints + chunk).slice(-4_000)));
    createInterface({ input: child.stdout }).on('line', (line) => /[✓×]/.test(line) && log(line.trim()));
    const stop = () => child.kill('SIGTERM');
    signal?.addEventListener('abort', stop, { once: true });
    const code = await new Promise((resolve) => child.once('close', resolve));
    signal?.removeEventListener('abort', stop);
    const text = await readFile(report, 'utf8').catch(() => null);
    if (text === null) {
      if (signal?.aborted) return { failed: [], ran: 0 };
      throw new Error(`vitest wrote no report: ${complaints}`);
    }
    const results = JSON.parse(text).testResults;
    const tests = results.flatMap(({ assertionResults }) => assertionResults);
    // A file that cannot be loaded has no tests, only a message.
    const broken = results.filter(
      ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
    );
    const failed = [
      ...tests
        .filter(({ status }) => status === 'failed')
        .map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join(' ')}`),
      ...broken.map(({ name, message }) => `${name}: ${message}`),
    ];
    // An error outside a test fails none of them.
    if (code !== 0 && failed.length === 0 && !signal?.aborted)
      failed.push(`vitest ended with ${code}: ${complaints}`);
    return {
      ran: tests.filter(({ status }) => status === 'passed' || status === 'failed').length,
      failed: failed.map((one) => one.slice(0, LONGEST)),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Runs specs in batches of random cases until `cases` were tried or the time is over. Each batch has a seed of its own and
 * evaluates filters in an order of its own; both are named in the notes, so that a batch can be repeated.
 * @param variables the environment of a batch, by its number of cases and its seed
 * @param first cases of the first batch, whose speed sizes the others, and the fewest of any; `most` bounds them
 */
export async function runBatches({ what, specs, variables, cases, first, most, minutes, seed, log, signal }) {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const losses = [];
  const seeds = [];
  let made = 0;
  let size = first;
  while (made < cases && !signal?.aborted) {
    const own = (seed + seeds.length) % 1_000_000_000;
    const order = String(own % 1_000_000);
    const { failed, ran } = await runSpecs(specs, {
      variables: { ...variables(size, own), EMBEDDED_MONGO_REORDER_FILTERS: order },
      signal,
    });
    losses.push(...failed.map((text) => `${text} (${size} ${what}, seed ${own}, filter order ${order})`));
    if (ran === 0) {
      if (!signal?.aborted) losses.push(`no test of ${specs.join(', ')} ran`);
      break;
    }
    seeds.push(`${size} with seed ${own}`);
    made += size;
    log(`${made} of ${cases} ${what}, ${losses.length} losses, ${Math.round(seconds())} s`);
    const left = minutes * 60 - seconds();
    const fits = Math.floor((left * made) / seconds());
    if (fits < first / 2) break;
    // A batch of fewer may not meet every kind of case, which the specs demand.
    const next = Math.max(first, Math.min(most, cases - made, fits));
    size = next;
  }
  return {
    losses,
    figures: [
      { name: what, value: made, unit: 'cases', atLeast: 1 },
      { name: `${what} per second`, value: Number((made / seconds()).toFixed(2)), unit: '1/s' },
    ],
    series: [],
    notes: [
      `${what}: ${seeds.join(', ')}. The order in which filters are evaluated has the same seed, modulo a million.`,
      ...(made < cases ? [`${cases} ${what} were wanted; the time permitted ${made}.`] : []),
    ],
  };
}

/** The share of the full number that belongs to this many minutes. */
export const casesWithin = (full, minutes, part) => Math.max(1, Math.round((full * minutes) / part.minutes));
