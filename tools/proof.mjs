// `npm run proof`: what is promised of many replicas, faults and long runs, tried on the real components for as long as one likes.
// Runs the parts of test/proof one after the other, each in a process of its own, and writes report.json and report.html.
// Exits 1 on a loss or a broken bound, 2 on wrong options. docs/operations/proof.md says what each part shows.
import { fork, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { reportPage } from '../test/proof/support/report-page.mjs';
import { brokenBound, lossesOf, lost, printable, shown } from '../test/proof/support/results.mjs';
import { build } from './build/build.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const RUNNER = fileURLToPath(new URL('../test/proof/support/run-part.mjs', import.meta.url));
/** Minutes of load that all parts of `--brief` have together: with their starts and ends they stay within a minute and a half. */
const BRIEF_TOGETHER = 0.9;
/** Seconds that a part may take beyond its minutes, for its start, its checks and its end. */
const GRACE = 240;
/** Seconds that a part has for its end when the command is stopped. */
const GRACE_OF_STOP = 60;

/** @satisfies {import('node:util').ParseArgsConfig['options']} */
const OPTIONS = {
  minutes: { type: 'string' },
  part: { type: 'string', multiple: true },
  brief: { type: 'boolean', default: false },
  seed: { type: 'string' },
  report: { type: 'string' },
  from: { type: 'string' },
  help: { type: 'boolean', default: false },
};

/** @returns {never} */
function wrong(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}

function options() {
  let values;
  try {
    ({ values } = parseArgs({ options: OPTIONS }));
  } catch (error) {
    wrong(
      `${/** @type {Error} */ (error).message}\nOptions are: ${Object.keys(OPTIONS)
        .map((name) => `--${name}`)
        .join(' ')}`,
    );
  }
  const minutes = values.minutes === undefined ? undefined : Number(values.minutes);
  if (minutes !== undefined && !(minutes > 0 && minutes <= 10_000))
    wrong(`--minutes takes a number above 0, such as 5 or 0.5; it was '${String(values.minutes)}'`);
  if (minutes !== undefined && values.brief)
    wrong('--minutes and --brief exclude each other: write one of them');
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 0)
    wrong(`--seed takes a whole number from 0 on; it was '${String(values.seed)}'`);
  return {
    ...values,
    minutes,
    seed,
    folder: resolve(values.from ?? join(root, 'test', 'proof')),
    report: resolve(values.report ?? join(root, 'reports', 'proof')),
  };
}

async function partsIn(folder) {
  if (!existsSync(folder)) wrong(`--from takes a folder with parts; there is none at '${folder}'`);
  const files = readdirSync(folder).filter((name) => name.endsWith('.mjs'));
  return Promise.all(
    files.sort().map(async (file) => {
      const path = join(folder, file);
      const { part } = await import(pathToFileURL(path).href);
      if (typeof part?.title !== 'string' || !(part.minutes > 0) || !(part.brief >= 0))
        throw new Error(`${path} exports no 'part' with title, minutes and brief`);
      return { name: basename(file, '.mjs'), path, ...part };
    }),
  );
}

const help = (parts) =>
  [
    'npm run proof -- [--minutes N] [--part NAME]… [--brief] [--seed N] [--report FOLDER] [--from FOLDER]',
    '',
    '  --minutes N      time of each part instead of its own',
    '  --part NAME      only this part; may be repeated',
    '  --brief          what CI runs: each part for seconds',
    '  --seed N         repeats the choices of an earlier run',
    '  --report FOLDER  where report.json and report.html go (reports/proof)',
    '  --from FOLDER    parts of another folder than test/proof',
    '',
    'Parts:',
    ...parts.map(({ name, title, minutes }) => `  ${name.padEnd(14)} ${title} (${minutes} min)`),
    '',
  ].join('\n');

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function machine() {
  const [first] = cpus();
  return {
    cores: cpus().length,
    processor: first?.model ?? 'unknown',
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    node: process.version,
    system: `${process.platform} ${process.arch}`,
  };
}

let stopped = false;
/** What ends the parts that run: kindly at first, and by force when it is asked for again. */
const stops = new Set();
for (const name of ['SIGINT', 'SIGTERM'])
  process.on(name, () => {
    // Before the first part nothing has to end.
    if (stops.size === 0) process.exit(1);
    for (const stop of stops) stop(stopped);
    if (!stopped) console.log(`stopping, within ${GRACE_OF_STOP} s; once more stops at once`);
    stopped = true;
  });

/** @returns the result of a part, or what kept it from returning one as a loss */
async function run({ name, path }, minutes, seed) {
  // Its temporary files, those of what it starts, and what is left of them when it is killed.
  const folder = mkdtempSync(join(tmpdir(), `parley-proof-${name}-`));
  // A group of its own, so that nothing it started outlives it, however it ended.
  const child = fork(RUNNER, [path, JSON.stringify({ minutes, seed })], {
    cwd: root,
    env: { ...process.env, TMPDIR: folder },
    detached: true,
  });
  let killedFor;
  const killGroup = () => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nothing of it runs any more.
    }
  };
  const killWithin = (seconds, reason) =>
    setTimeout(() => {
      killedFor = reason;
      killGroup();
    }, seconds * 1000);
  let limit = killWithin(minutes * 60 + GRACE, `did not end within ${GRACE} s after its time and was killed`);
  const stop = (atOnce) => {
    clearTimeout(limit);
    limit = killWithin(atOnce ? 0 : GRACE_OF_STOP, 'was stopped, did not end and was killed');
    child.kill('SIGTERM');
  };
  stops.add(stop);
  let returned;
  child.on('message', (/** @type {any} */ message) => {
    if (typeof message?.log === 'string') console.log(`  ${name}: ${printable(message.log)}`);
    else returned = message;
  });
  // With the channel closed, everything that was sent has arrived.
  const [[code, signal]] = await Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
  clearTimeout(limit);
  stops.delete(stop);
  killGroup();
  const result = resultOf(
    returned,
    killedFor ?? `its process ended with ${signal ?? code} before it returned anything`,
  );
  // Logs and files of a part that lost something help to find out why.
  const isKept = !stopped && lossesOf(result).length > 0 && readdirSync(folder).length > 0;
  if (isKept) result.notes.push(`Files that the part left are in ${folder}.`);
  else rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  if (stopped) result.losses.push('was stopped before its time was over');
  return result;
}

function resultOf(returned, missing) {
  if (typeof returned?.error === 'string') return lost(`could not run: ${returned.error}`);
  return returned?.result === undefined ? lost(missing) : shown(returned.result);
}

const settings = options();
const known = await partsIn(settings.folder);
if (settings.help) {
  process.stdout.write(help(known));
  process.exit(0);
}
for (const name of settings.part ?? [])
  if (!known.some((part) => part.name === name))
    wrong(`there is no part '${name}'; parts are ${known.map((part) => part.name).join(', ')}`);
const asked = known.filter(({ name }) => settings.part?.includes(name) ?? true);
const able = asked.filter(({ brief }) => !settings.brief || brief > 0);
// Most of a brief part is its start, its end and waits, so two run at a time. What measures speed comes after them, alone.
const together = settings.brief ? able.filter(({ alone }) => !alone) : [];
const inTurn = able.filter((part) => !together.includes(part));
const chosen = [...together, ...inTurn];
if (chosen.length === 0) wrong(`none of the parts in ${settings.folder} can run so`);
// Parts of another folder bring what they need.
if (!settings.from && build({ ifNeeded: true }) !== 0) process.exit(1);

const brief = chosen.reduce((sum, part) => sum + part.brief, 0);
const minutesOf = (part) =>
  settings.brief ? part.brief * Math.min(1, BRIEF_TOGETHER / brief) : (settings.minutes ?? part.minutes);

const report = {
  command: `npm run proof${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(' ')}` : ''}`,
  seed: settings.seed,
  brief: settings.brief,
  commit: `${git('rev-parse', 'HEAD') ?? 'unknown'}${git('status', '--porcelain') ? ', with changes' : ''}`,
  started: new Date().toISOString(),
  machine: machine(),
  losses: 0,
  /** @type {any[]} */
  parts: [],
};
console.log(
  `proof: ${chosen.length} part(s), seed ${settings.seed}, Node ${process.version}, load ${loadavg()[0].toFixed(1)}`,
);
for (const { name } of asked.filter((part) => !chosen.includes(part)))
  console.log(`not run: ${name} has no brief form; run it with --part ${name}`);
mkdirSync(settings.report, { recursive: true });

/** Results by part; they are printed in the order of the parts. */
const results = new Map();
let printed = 0;

async function runPart(part) {
  if (stopped) return;
  const load = Number(loadavg()[0].toFixed(2));
  const minutes = minutesOf(part);
  const began = performance.now();
  const result = await run(part, minutes, settings.seed);
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  results.set(part, { name: part.name, title: part.title, minutes, seconds, load, ...result });
  // After each part: a machine that goes down in the middle leaves what was seen until then.
  report.parts = chosen.flatMap((one) => results.get(one) ?? []);
  report.losses = report.parts.reduce((sum, one) => sum + lossesOf(one).length, 0);
  writeFileSync(join(settings.report, 'report.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(settings.report, 'report.html'), reportPage(report));
  for (; results.has(chosen[printed]); printed += 1) print(results.get(chosen[printed]));
}

function print(part) {
  const losses = lossesOf(part);
  const [name, title] = [part.name, part.title].map(printable);
  console.log(`${losses.length === 0 ? 'ok  ' : 'FAIL'} ${name} (${part.seconds} s): ${title}`);
  for (const figure of part.figures)
    console.log(
      printable(
        `       ${figure.name}: ${figure.value} ${figure.unit ?? ''}${brokenBound(figure) ? '  BROKEN' : ''}`,
      ),
    );
  for (const loss of losses.slice(0, 20)) console.log(`  LOSS ${printable(loss)}`);
  if (losses.length > 20) console.log(`  and ${losses.length - 20} more, see the report`);
}

const waiting = [...together];
const lane = async () => {
  for (let part = waiting.shift(); part; part = waiting.shift()) await runPart(part);
};
await Promise.all([lane(), lane()]);
for (const part of inTurn) await runPart(part);
console.log(
  `${report.losses === 0 ? 'no loss' : `${report.losses} loss(es)`}; report: ${join(settings.report, 'report.html')}`,
);
process.exit(report.losses === 0 ? 0 : 1);
