// A service over three databases under load, while one of the further ones is killed, stopped or hangs: calls of its classes are
// refused until it is back, and those of the others go on.
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { stringify } from 'yaml';
import { freePort } from '../../tools/free-port.mjs';
import { folderWith, root, SERVICE, start } from '../bench/processes.mjs';
import { SeededRandom } from './support/seeded-random.mjs';

export const part = {
  title: 'Three databases, one of which is killed or hangs',
  minutes: 2,
  brief: 0.25,
};

/** Milliseconds within which calls of a database that is back are answered. */
const RECOVERED_WITHIN = 15_000;
/** Milliseconds in which every call is answered, also of a database that hangs. */
const ANSWERED_WITHIN = 40_000;
const TENANTS = ['acme', 'globex'];
/** What no answer may contain. */
const INTERNAL = /mongodb:\/\/|Mongo\w*Error|ECONN|127\.0\.0\.1|\.tickets|node_modules|\bat .*\.js:\d+/;

/** By what the configuration calls it: the class of it, its databases and whether the service waits for it. */
const PLACES = {
  crm: { className: 'Customer', collection: 'customers', names: ['crm'], ready: 200 },
  app: {
    className: 'Ticket',
    collection: 'tickets',
    names: TENANTS.map((name) => `tenant_${name}`),
    ready: 503,
  },
};

/** A database in a process of its own, on a port that it keeps. */
class DatabaseProcess {
  #running;

  constructor(port, { collection, names }) {
    this.port = port;
    this.uri = `mongodb://127.0.0.1:${port}/`;
    this.collection = collection;
    this.names = names;
  }

  async start() {
    const args = [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', String(this.port)];
    this.#running = await start(args, { ready: /listening on (\S+)/, clock: false });
    const client = await MongoClient.connect(this.uri);
    for (const name of this.names)
      await client
        .db(name)
        .collection(this.collection)
        .insertOne({ mark: `row of ${name}` });
    await client.close();
  }

  end(signal) {
    return this.#running.stop(signal);
  }

  signal(name) {
    this.#running.signal(name);
  }
}

/** @param {Record<string, any>} databases */
const configuration = ({ crm, app }) =>
  stringify({
    server: { port: 0 },
    databases: {
      shop: { uri: 'embedded' },
      crm: { uri: crm.uri, name: 'crm', storage: 'plain', required: false },
      app: { uri: app.uri, storage: 'plain', name: 'tenant_{tenant}' },
    },
    agents: Object.fromEntries(
      TENANTS.map((tenantId) => [tenantId, { tenantId, permissions: 'admin', rateLimit: 1_000_000_000 }]),
    ),
    auth: TENANTS.map((agent) => ({ apiKey: agent, agent })),
    policy: {
      classes: {
        Order: {},
        Customer: { database: 'crm', collection: 'customers', properties: { mark: { type: 'String' } } },
        Ticket: { database: 'app', collection: 'tickets', properties: { mark: { type: 'String' } } },
      },
    },
  });

/** Everything that was asked, and how it was answered. */
class Load {
  counts = {};
  losses = new Set();
  /** Databases that are away, or were a moment ago. */
  away = new Set();
  /** By place, good answers in a row. */
  inRow = { shop: 0, crm: 0, app: 0 };

  constructor(url, going) {
    this.url = url;
    this.going = going;
  }

  count(name) {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }

  async repeat(place, tool, makeArguments, tenant) {
    for (let turn = 0; this.going(); turn += 1) {
      const wasAway = this.away.has(place);
      const params = { name: tool, arguments: makeArguments(`${tenant}${turn}`) };
      const answer = await fetch(this.url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-MCP-API-Key': tenant },
        body: JSON.stringify({ jsonrpc: '2.0', id: 'q', method: 'tools/call', params }),
        signal: AbortSignal.timeout(ANSWERED_WITHIN),
      }).then(
        (response) => response.text(),
        (error) => `no answer: ${error.name}`,
      );
      this.#judge(place, tool, tenant, answer, wasAway || this.away.has(place));
      await pause(5);
    }
  }

  #judge(place, tool, tenant, answer, mayFail) {
    const good = answer.includes('"isError":false');
    this.inRow[place] = good ? this.inRow[place] + 1 : 0;
    this.count(`${place}: ${good ? 'answered' : 'refused'}`);
    if (good && this.away.size > 0 && !mayFail) this.count('answered while another database was away');
    const lose = (what) => this.losses.add(`${tool} of ${place}: ${what}: ${answer.slice(0, 300)}`);
    if (INTERNAL.test(answer)) lose('something internal was shown');
    if (
      place === 'app' &&
      TENANTS.some((other) => other !== tenant && answer.includes(`row of tenant_${other}`))
    )
      lose('the database of another tenant was read');
    if (good) return;
    if (!mayFail) lose('was refused though its database was there');
    else if (!answer.includes('"parse.error_code":"parse_error"')) lose('was refused with another code');
  }
}

/** Every fault by its name: it takes the database away for some time. */
const FAULTS = {
  'databases killed': async (database, milliseconds) => {
    await database.end('SIGKILL');
    await pause(milliseconds);
    await database.start();
  },
  'databases stopped': async (database, milliseconds) => {
    await database.end('SIGTERM');
    await pause(milliseconds);
    await database.start();
  },
  'databases that hung': async (database, milliseconds) => {
    database.signal('SIGSTOP');
    await pause(milliseconds);
    database.signal('SIGCONT');
  },
};

/** One fault after another, each kind at each database before it comes again. @returns the longest recovery in milliseconds */
async function strike(load, databases, origin, { going, random, log }) {
  let left = [];
  let longest = 0;
  while (going()) {
    if (left.length === 0)
      left = Object.keys(PLACES).flatMap((place) => Object.keys(FAULTS).map((fault) => [place, fault]));
    const [[place, fault]] = left.splice(random.below(left.length), 1);
    load.away.add(place);
    const looked = pause(2_000).then(() => readyOf(origin, place));
    await FAULTS[fault](databases[place], 3_500 + random.below(1_500));
    load.count(fault);
    const { status, state } = await looked;
    if (status !== PLACES[place].ready || state !== 'down')
      load.losses.add(`/ready was ${status} and named ${place} ${state} while it was away`);
    const back = performance.now();
    load.inRow[place] = 0;
    const took = () => performance.now() - back;
    while (load.inRow[place] < 20 && took() < RECOVERED_WITHIN) await pause(20);
    if (load.inRow[place] < 20)
      load.losses.add(`calls of ${place} did not succeed within ${RECOVERED_WITHIN / 1000} s after ${fault}`);
    longest = Math.max(longest, took());
    log(`${fault}: ${place}, recovered in ${Math.round(took())} ms`);
    // A call may still run that began while it was away.
    await pause(500);
    load.away.delete(place);
    await pause(500);
  }
  return longest;
}

async function readyOf(origin, place) {
  const response = await fetch(`${origin}/ready`);
  const { dependencies } = await response.json();
  return { status: response.status, state: dependencies[`mongodb.${place}`] };
}

export async function run({ minutes, seed, log, signal }) {
  const random = new SeededRandom(seed, 'databases');
  /** @type {Record<string, DatabaseProcess>} */
  const databases = {};
  for (const [name, place] of Object.entries(PLACES)) {
    databases[name] = new DatabaseProcess(await freePort(), place);
    await databases[name].start();
  }
  const service = await start(SERVICE, {
    cwd: folderWith({ 'parley.yaml': configuration(databases) }),
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
    ready: /Parley listening on (\S+)/,
  });
  const ends = performance.now() + minutes * 60_000;
  const isTime = () => !signal.aborted && performance.now() < ends;
  let isOver = false;
  const load = new Load(service.url, () => !isOver);
  const ask = (place, tool, make) => TENANTS.map((tenant) => load.repeat(place, tool, make, tenant));
  const work = [
    ...ask('shop', 'get_all_schemas', () => ({})),
    ...Object.entries(PLACES).flatMap(([place, { className: class_name }]) => [
      ...ask(place, 'query_class', () => ({ class_name, order: 'objectId', limit: 5 })),
      ...ask(place, 'create_object', (mark) => ({
        class_name,
        fields: { mark },
        idempotency_key: `${place}-${mark}`,
      })),
    ]),
  ];
  try {
    const { origin } = new URL(service.url);
    const longest = await strike(load, databases, origin, { going: isTime, random, log });
    isOver = true;
    await Promise.all(work);
    const tried = ['answered while another database was away', 'crm: refused', 'app: answered'];
    const figures = Object.entries({
      ...Object.fromEntries([...tried, ...Object.keys(FAULTS)].map((name) => [name, 0])),
      ...load.counts,
    });
    return {
      losses: [...load.losses],
      figures: [
        ...figures.map(([name, value]) => ({
          name,
          value,
          unit: '',
          ...((name === tried[0] || (minutes >= 1 && name in FAULTS)) && { atLeast: 1 }),
        })),
        {
          name: 'longest recovery',
          value: Math.round(longest) / 1000,
          unit: 's',
          atMost: RECOVERED_WITHIN / 1000,
        },
      ],
      series: [],
      notes: [],
    };
  } finally {
    isOver = true;
    await service.stop();
    await Promise.all(Object.values(databases).map((database) => database.end('SIGKILL')));
  }
}
