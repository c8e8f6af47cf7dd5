// `npm run capacity -- --agents 10000 --tenants 1000 --calls-per-second 500`: what a deployment needs for a load, from figures that were
// measured here (tools/capacity/measured.json), and what it lacks first. docs/operations/scale.md explains it; `--help` lists the options.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { DEFAULTS, MOST_REPLICAS, plan } from './capacity/model.mjs';

const measured = JSON.parse(readFileSync(new URL('capacity/measured.json', import.meta.url), 'utf8'));
const KINDS = measured.kinds.map(({ name }) => name);

/**
 * Each option: where its number goes, the least that is accepted, whether it is whole, what it means.
 * @type {Record<string, [group: 'demand' | 'supply', key: string, least: number, whole: boolean, meaning: string]>}
 */
const OPTIONS = {
  agents: ['demand', 'agents', 1, true, 'principals that call: credentials, not configured agents'],
  tenants: ['demand', 'tenants', 1, true, 'tenants that they belong to'],
  'calls-per-second': ['demand', 'callsPerSecond', 0, false, 'requests of all kinds of the mix together'],
  sessions: ['demand', 'sessions', 0, true, 'open sessions'],
  streams: ['demand', 'streams', 0, true, 'open listening streams'],
  subscriptions: ['demand', 'subscriptions', 0, true, 'subscriptions of the classes that change'],
  'changes-per-second': ['demand', 'changesPerSecond', 0, false, 'notifications that each subscription gets'],
  definitions: ['demand', 'definitions', 1, true, 'agents in the configuration'],
  classes: ['demand', 'classes', 0, true, 'classes of the database'],
  replicas: ['supply', 'replicas', 1, true, 'replicas or processes there are; default: as few as suffice'],
  busy: ['supply', 'busy', 0.01, false, 'part of a core that may be used on average'],
  'replica-memory': ['supply', 'replicaMemory', 1, false, 'MB of a replica'],
  'streams-per-replica': ['supply', 'streamsPerReplica', 1, true, 'server.maxConcurrentDispatchers'],
  'connections-per-replica': ['supply', 'connectionsPerReplica', 1, true, 'server.maxConnections'],
  network: ['supply', 'network', 0.01, false, 'Mbit/s of a replica'],
  'rate-limit': ['supply', 'rateLimit', 1, true, 'calls of a principal in a minute'],
  'redis-primaries': ['supply', 'redisPrimaries', 1, true, 'primaries of the Redis'],
  'redis-memory': ['supply', 'redisMemory', 1, false, 'MB of each of them'],
  shards: ['supply', 'shards', 1, true, 'shards of the database, by tenant'],
  'database-commands': [
    'supply',
    'databaseCommands',
    1,
    false,
    'commands per second that a shard serves; without it not judged',
  ],
  'database-latency': ['supply', 'databaseLatency', 0, false, 'milliseconds of a command'],
  'task-seconds': ['supply', 'taskSeconds', 0, false, 'seconds of a task'],
  'tasks-at-once': ['supply', 'tasksAtOnce', 1, true, 'tasks.concurrency'],
};

/** Products of larger numbers are none any more, and a resource with such a need would not be short. */
const MOST = 1e12;

/** @returns {never} */
function wrong(sentence) {
  console.error(`capacity: ${sentence} (npm run capacity -- --help)`);
  process.exit(2);
}

function given() {
  /** @satisfies {import('node:util').ParseArgsConfig['options']} */
  const others = { mix: { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean' } };
  /** @type {Record<string, { type: 'string' }>} */
  const numbers = Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, { type: 'string' }]));
  try {
    return parseArgs({ options: { ...numbers, ...others } }).values;
  } catch (error) {
    return wrong(/** @type {Error} */ (error).message.split(/[.\n]/)[0]);
  }
}

function numberOf(name, text) {
  const [, , least, whole] = OPTIONS[name];
  const number = Number(text);
  const kind = whole ? 'a whole number' : 'a number';
  if (
    text.trim() === '' ||
    !Number.isFinite(number) ||
    number < least ||
    (whole && !Number.isInteger(number))
  )
    wrong(`--${name} must be ${kind} of at least ${least}, not '${text.slice(0, 40)}'`);
  if (number > MOST) wrong(`--${name} must be at most ${MOST}, not '${text.slice(0, 40)}'`);
  return number;
}

/** `query_class=60,count_objects=40`: weights. */
function mixOf(text) {
  const mix = {};
  for (const part of text.split(',')) {
    const [name = '', weight = ''] = part.split('=');
    if (!KINDS.includes(name))
      wrong(`--mix: there is no kind '${name.slice(0, 40)}'; there are ${KINDS.join(', ')}`);
    const number = Number(weight);
    if (weight.trim() === '' || !(number >= 0 && number <= MOST))
      wrong(`--mix: write ${name}=<weight>, with a weight of at least 0 and at most ${MOST}`);
    if (Object.hasOwn(mix, name)) wrong(`--mix names ${name} twice`);
    mix[name] = number;
  }
  if (Object.values(mix).every((weight) => weight === 0)) wrong('--mix needs a weight above 0');
  return mix;
}

function help() {
  console.log('npm run capacity -- [options]\n');
  const lines = Object.entries(OPTIONS).map(([name, [group, key, , , meaning]]) => {
    const usual = DEFAULTS[group][key];
    return [`--${name}`, `${meaning}${usual === null ? '' : ` (${usual})`}`];
  });
  const mix = Object.entries(DEFAULTS.demand.mix).map(([name, weight]) => `${name}=${weight}`);
  lines.push(
    ['--mix', `weights of kinds (${mix.join(',')})`],
    ['--json', 'the plan as JSON'],
    ['--help', 'this'],
  );
  for (const [name, meaning] of lines) console.log(`  ${name.padEnd(26)} ${meaning}`);
  console.log(`\nKinds: ${KINDS.join(', ')}`);
}

const shown = (number) =>
  number === null
    ? '?'
    : number >= 100
      ? Math.round(number).toLocaleString('en-US')
      : String(Number(number.toPrecision(3)));

function print({ replicas, fewestReplicas, total, resources, short, first, firstBeside }) {
  if (fewestReplicas === null) console.log(`No number of replicas up to ${shown(MOST_REPLICAS)} suffices.`);
  console.log(
    `${replicas} ${replicas === 1 ? 'replica or process' : 'replicas or processes'}, ${shown(total.cores)} cores; ` +
      `Redis ${shown(total.redisCommands)} commands/s, ${shown(total.redisCores)} cores; database ${shown(total.databaseCommands)} commands/s; ` +
      `network ${shown(total.megabitsPerSecond)} Mbit/s; ${shown(total.tenantsPerShard)} tenants per shard`,
  );
  const width = Math.max(...resources.map(({ name }) => name.length));
  for (const { name, unit, need, has, use, lastsUntil } of resources) {
    const part = use === null ? 'not judged' : `${Math.round(use * 100)} %`;
    const until =
      use === null || !Number.isFinite(lastsUntil)
        ? ''
        : lastsUntil < 1
          ? 'SHORT'
          : `until ${shown(lastsUntil)} × the load`;
    console.log(
      `${name.padEnd(width)}  ${shown(need).padStart(8)} of ${shown(has).padStart(8)} ${unit.padEnd(11)} ${part.padStart(10)}  ${until}`,
    );
  }
  if (first) console.log(`\n${short.length > 0 ? 'Short of' : 'First'}: ${first.name}. Then: ${first.next}.`);
  if (firstBeside && firstBeside !== first)
    console.log(`First although replicas are added: ${firstBeside.name}. Then: ${firstBeside.next}.`);
  const { machine, date } = measured;
  console.log(
    `Measured on ${date}: ${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, load ${machine.load}.`,
  );
}

const { json, help: asked, mix, ...options } = given();
if (asked) {
  help();
} else {
  const wanted = { demand: { ...DEFAULTS.demand }, supply: { ...DEFAULTS.supply } };
  for (const [name, text] of Object.entries(options)) {
    const [group, key] = OPTIONS[name];
    wanted[group][key] = numberOf(name, text);
  }
  if (mix !== undefined) wanted.demand.mix = mixOf(mix);
  if (wanted.supply.busy > 1) wrong('--busy must be at most 1: one process has one core');
  const result = plan(measured, wanted.demand, wanted.supply);
  if (json) console.log(JSON.stringify({ ...wanted, plan: result, measured: measured.date }, null, 2));
  else print(result);
}
