// The kinds of request whose cost `npm run bench -- capacity` measures, and the service that answers them.
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { startRedisServer } from '../../tools/redis-server.mjs';
import { CONNECTIONS, request } from './load.mjs';
import { root } from './processes.mjs';
import { countingDatabase, countingRedis } from './wire-counts.mjs';
import { call, LIST, startDatabase, startParley } from './works.mjs';

const TENANT = 'northside';
const CLASS = 'Measured';
/** Rows of the class; those that are deleted come from the end. */
const ROWS = 2000;
const EXPORTED = 1000;
const MODERN = '2026-07-28';
const TASKS = 'io.modelcontextprotocol/tasks';
const CLASSIC = '2025-06-18';

const keyed = (key) => ({ 'x-mcp-api-key': key });
const BENCH = keyed('bench-key');
const CHIEF = keyed('chief-key');
/** Requests of one operator to the console are limited. */
const OPERATORS = Array.from({ length: 10 }, (_, number) => `operator${number}`);

/** Agents of every measured service. */
export const CONFIGURED = 2 + OPERATORS.length;

const GATES = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
};
const free = { tenantId: TENANT, rateLimit: 1_000_000_000 };

/** Rows that requests read, change, export and delete. */
async function addRows(uri) {
  const client = await MongoClient.connect(uri);
  const database = client.db('parley');
  /** @type {import('mongodb').Collection<any>} */
  const schemas = database.collection('_SCHEMA');
  await schemas.insertOne({
    _id: CLASS,
    objectId: 'string',
    createdAt: 'date',
    updatedAt: 'date',
    title: 'string',
    rank: 'number',
    orgId: 'string',
  });
  const at = new Date('2026-01-01');
  /** @type {import('mongodb').Collection<{ _id: string }>} */
  const rows = database.collection(CLASS);
  await rows.insertMany(
    Array.from({ length: ROWS }, (_, rank) => ({
      _id: `row${rank}`,
      title: `Row ${rank}`,
      rank,
      orgId: TENANT,
      _created_at: at,
      _updated_at: at,
    })),
  );
  await rows.createIndex({ orgId: 1 });
  await client.close();
}

/**
 * A service with everything that the kinds need; limits that no load reaches.
 * @param {{ uri: string, redis: string, server?: object, agents?: object, auth?: object[] } & Record<string, unknown>} options
 */
export function startMeasured({ uri, redis, server = {}, agents = {}, auth = [], ...more }) {
  return startParley(
    {
      uri,
      redis: { url: redis },
      plugins: [join(root, 'test/bench/task-tool.mjs')],
      server: { maxConcurrentDispatchers: null, ...server },
      agents: {
        bench: { ...free, permissions: 'admin' },
        chief: { ...free, permissions: 'admin' },
        ...Object.fromEntries(OPERATORS.map((name) => [name, { ...free }])),
        ...agents,
      },
      auth: [
        ...['bench', 'chief', ...OPERATORS].map((agent) => ({ apiKey: `${agent}-key`, agent })),
        ...auth,
      ],
      approvals: { mode: 'desk', approvers: ['chief'] },
      console: { operators: OPERATORS },
      subscriptions: { debounce: 0.05 },
      tasks: { maxPerPrincipal: 5000 },
      policy: {
        suppressMasterKeyWarning: true,
        requireApprovalFor: ['admin'],
        classes: {
          Listing: { fields: ['sku', 'format', 'price', 'stock'], tenantScope: { field: 'orgId' } },
          [CLASS]: { tenantScope: { field: 'orgId' } },
        },
      },
      ...more,
    },
    { env: GATES, flags: ['--expose-gc'] },
  );
}

/**
 * A database with the rows and a Redis, whose commands and bytes are counted, while the work takes.
 * @template Result
 * @param {(world: any) => Promise<Result>} work
 */
export async function withWorld(work) {
  const [embedded, redisServer] = await Promise.all([startDatabase(), startRedisServer()]);
  await addRows(embedded.url);
  const database = await countingDatabase(embedded.url);
  const redis = await countingRedis(redisServer.url);
  const result = await work({ database, redis, uri: database.url, redisUrl: redisServer.url });
  redis.close();
  database.close();
  await Promise.all([redisServer.close(), embedded.stop()]);
  return result;
}

/** So many times, so many at once. */
export async function repeat(count, atOnce, work) {
  let left = count;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await work();
    }),
  );
}

let last = 0;
const next = () => (last += 1);
let deleted = 0;
const anyRow = () => `row${next() % (ROWS / 2)}`;

/** @throws when the answer is not the work: nothing else may be measured */
function resultOf({ status, text }) {
  const { result, error } = status === 200 ? JSON.parse(text) : {};
  if (!result || error || result.isError) throw new Error(`answered ${status}: ${text.slice(0, 300)}`);
  return result;
}

/** One client of a service: requests over connections that stay open, and the bytes of those. */
export class Client {
  constructor({ url }, headers = BENCH) {
    this.url = url;
    this.headers = headers;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    this.sockets = new Set();
    const { createConnection } = this.agent;
    this.agent.createConnection = (...args) => {
      const socket = createConnection.apply(this.agent, args);
      this.sockets.add(socket);
      return socket;
    };
  }

  get bytes() {
    return [...this.sockets].reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0);
  }

  post = (body, headers = {}) => request(this.agent, this.url, body, { ...this.headers, ...headers });

  route = (path, { method = 'GET', body = '', headers = this.headers } = {}) =>
    request(this.agent, new URL(path, this.url), body, headers, method);

  tool = async (name, args) => resultOf(await this.post(call(name, args))).structuredContent;

  modern = async (method, params) => {
    const named = params.name ?? params.taskId;
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': MODERN,
      'io.modelcontextprotocol/clientCapabilities': { extensions: { [TASKS]: {} } },
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: next(), method, params: { ...params, _meta } });
    return resultOf(
      await this.post(body, { 'mcp-protocol-version': MODERN, 'mcp-method': method, 'mcp-name': named }),
    );
  };

  /** Opens a session. @returns its headers */
  session = async () => {
    const params = {
      protocolVersion: CLASSIC,
      capabilities: {},
      clientInfo: { name: 'bench', version: '1' },
    };
    const answer = await this.post(
      JSON.stringify({ jsonrpc: '2.0', id: next(), method: 'initialize', params }),
    );
    resultOf(answer);
    return { 'mcp-session-id': answer.headers['mcp-session-id'], 'mcp-protocol-version': CLASSIC };
  };

  /** Opens the listening stream of a session. */
  listen = (session, heard = () => {}) =>
    new Promise((resolve, reject) => {
      const opened = http.get(
        this.url,
        { agent: false, headers: { ...this.headers, ...session, accept: 'text/event-stream' } },
        (stream) => {
          if (stream.statusCode !== 200)
            return reject(new Error(`a stream was answered with ${stream.statusCode}`));
          stream.setEncoding('utf8').on('data', (text) => {
            if (text.includes('notifications/resources/updated')) heard();
          });
          stream.on('error', () => {});
          return resolve({ close: () => opened.destroy() });
        },
      );
      opened.once('error', reject);
    });

  subscribe = async (session) => {
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: next(),
      method: 'resources/subscribe',
      params: { uri: `parse://${CLASS}/count` },
    });
    resultOf(await this.post(body, session));
  };

  close() {
    this.agent.destroy();
  }
}

const listing = { class_name: 'Listing' };
const vinyl = { format: 'vinyl' };
const GROUPS = [{ $group: { _id: '$stock', n: { $sum: 1 } } }, { $sort: { _id: 1 } }, { $limit: 10 }];

/** Asks for a deletion, approves it as the other person, and waits for the answer. */
async function approved(client) {
  const asked = client.tool('delete_object', { class_name: CLASS, object_id: `row${ROWS - (deleted += 1)}` });
  asked.catch(() => {});
  for (let looks = 0; looks < 100; looks += 1) {
    await pause(10);
    const { text } = await client.route('/approvals', { headers: CHIEF });
    const [open] = JSON.parse(text).approvals ?? [];
    if (!open) continue;
    const at = `/approvals/${open.id}`;
    const { digest } = JSON.parse((await client.route(at, { headers: CHIEF })).text);
    const body = JSON.stringify({ decision: 'approve', digest });
    const headers = { ...CHIEF, 'content-type': 'application/json' };
    await client.route(at, { method: 'POST', body, headers });
    return asked;
  }
  throw new Error('nothing was asked for');
}

async function taskEnded(client) {
  const { taskId } = await client.modern('tools/call', { name: 'count_in_task', arguments: {} });
  for (let polls = 0; polls < 100; polls += 1) {
    await pause(60);
    const { status } = await client.modern('tasks/get', { taskId });
    if (status === 'completed') return;
    if (status !== 'working') throw new Error(`the task is ${status}`);
  }
  throw new Error('the task does not end');
}

async function refused(client) {
  const { text } = await client.post(call('query_class', { ...listing, where: { costPrice: 1 } }));
  if (!JSON.parse(text).result?.isError) throw new Error('was not refused');
}

/** `requests`: HTTP requests of one. `count`: in a round; `at`: at once. */
export const KINDS = [
  { name: 'initialize', title: 'initialize: a session is opened', work: (client) => client.session() },
  {
    name: 'tools_list',
    title: 'tools/list',
    count: 400,
    work: async (client) => resultOf(await client.post(LIST)),
  },
  {
    name: 'query_class',
    title: 'query_class of 20 rows',
    count: 200,
    work: (client) => client.tool('query_class', { ...listing, where: vinyl, limit: 20 }),
  },
  {
    name: 'count_objects',
    title: 'count_objects',
    count: 200,
    work: (client) => client.tool('count_objects', { ...listing, where: vinyl }),
  },
  {
    name: 'aggregate',
    title: 'aggregate, ten groups',
    count: 200,
    work: (client) => client.tool('aggregate', { ...listing, pipeline: GROUPS }),
  },
  {
    name: 'get_object',
    title: 'get_object',
    count: 200,
    work: (client) => client.tool('get_object', { class_name: CLASS, object_id: anyRow() }),
  },
  {
    name: 'create_object',
    title: 'create_object',
    work: (client) => client.tool('create_object', { class_name: CLASS, fields: { title: 'New' } }),
  },
  {
    name: 'create_keyed',
    title: 'create_object with an idempotency_key',
    work: (client) =>
      client.tool('create_object', {
        class_name: CLASS,
        fields: { title: 'New' },
        idempotency_key: `c${next()}`,
      }),
  },
  {
    name: 'update_object',
    title: 'update_object',
    work: (client) =>
      client.tool('update_object', { class_name: CLASS, object_id: anyRow(), fields: { rank: next() } }),
  },
  {
    name: 'update_keyed',
    title: 'update_object with an idempotency_key',
    work: (client) =>
      client.tool('update_object', {
        class_name: CLASS,
        object_id: anyRow(),
        fields: { rank: next() },
        idempotency_key: `u${next()}`,
      }),
  },
  {
    name: 'export_1000',
    title: `export of ${EXPORTED} rows: ordered and read`,
    count: 15,
    warmUp: 40,
    at: 2,
    work: async (client) => {
      const { path } = await client.tool('export_data', {
        class_name: CLASS,
        delivery: 'resource',
        format: 'ndjson',
        limit: EXPORTED,
      });
      const { text } = await client.route(path);
      const rows = text.trimEnd().split('\n').length;
      if (rows !== EXPORTED) throw new Error(`exported ${rows} rows: ${text.slice(0, 200)}`);
    },
  },
  {
    name: 'approval',
    title: 'deletion that waits for an approval, the list of cases, the decision',
    count: 20,
    warmUp: 60,
    at: 1,
    work: approved,
  },
  { name: 'task', title: 'task: started, polled, ended', count: 40, warmUp: 100, at: 4, work: taskEnded },
  { name: 'refused', title: 'refused call (a field that is not readable)', count: 200, work: refused },
  {
    name: 'wrong_token',
    title: 'wrong API key, another one each time',
    count: 200,
    work: async (client) => {
      const { status } = await client.post(LIST, keyed(`wrong-${next()}`));
      if (status !== 401) throw new Error(`answered ${status}`);
    },
  },
  {
    name: 'console_overview',
    title: 'console: overview of an hour',
    count: 20,
    warmUp: 100,
    work: async (client) => {
      const { status } = await client.route('/console/api/overview', {
        headers: keyed(`${OPERATORS[next() % OPERATORS.length]}-key`),
      });
      if (status !== 200) throw new Error(`answered ${status}`);
    },
  },
];

/** Inserts a row as another program does. */
export async function insertRow(database) {
  const at = new Date();
  await database.collection(CLASS).insertOne({
    _id: `told${next()}`,
    title: 'Told',
    rank: 0,
    orgId: TENANT,
    _created_at: at,
    _updated_at: at,
  });
}
