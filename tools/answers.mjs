// `node tools/answers.mjs record FILE` writes down what the built service answers to several hundred requests, over every tool, tier,
// format, revision and route of the demo; `compare FILE` asks again and prints what differs. For changes that must change no answer.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { folderWith, root, start } from '../test/bench/processes.mjs';

const [mode, file] = process.argv.slice(2);
if (!['record', 'compare'].includes(mode) || !file) {
  console.error('usage: node tools/answers.mjs record|compare FILE');
  process.exit(2);
}

const KEYS = {
  reader: 'reader-key',
  writer: 'writer-key',
  admin: 'admin-key',
  lean: 'lean-key',
  asked: 'asked-key',
};
const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
const CLASSES = [
  'Artist',
  'Album',
  'Song',
  'Store',
  'Listing',
  'Customer',
  'Order',
  'OrderLine',
  'Review',
  'Playlist',
];
const UNSEEN = ['SupplierContract', 'Nope', '_User', '_Role', 'album', 'Album; drop'];

function configuration() {
  const config = parse(readFileSync(join(root, 'parley.yaml'), 'utf8'));
  config.database.seed = join(root, 'demo/seed.json');
  const tenant = { tenantId: 'northside', rateLimit: 100_000 };
  config.policy.unlistedClasses = 'allow';
  config.server = { ...config.server, port: 0, requestRateLimit: null };
  config.agents = {
    reader: { permissions: 'readonly', ...tenant },
    writer: { permissions: 'write', allowMutations: true, ...tenant },
    admin: { permissions: 'admin', allowMutations: true, ...tenant },
    lean: {
      permissions: 'readonly',
      tools: { only: ['query_class', 'count_objects'] },
      classes: { only: ['Album'] },
      ...tenant,
    },
    asked: { permissions: 'write', allowMutations: true, filters: { Album: { genre: 'jazz' } }, ...tenant },
  };
  config.auth = Object.entries(KEYS).map(([agent, apiKey]) => ({ apiKey, agent }));
  return config;
}

/** @typedef {{ agent?: string, revision?: string, method?: string, params?: object, path?: string }} Asked */

/**
 * Every request of the record, in the order in which they are sent.
 * @returns {Generator<Asked>}
 */
function* requests() {
  for (const agent of Object.keys(KEYS)) {
    for (const revision of REVISIONS)
      for (const method of [
        'initialize',
        'tools/list',
        'prompts/list',
        'resources/list',
        'resources/templates/list',
        'ping',
      ])
        yield { agent, revision, method, params: method === 'initialize' ? initialize(revision) : {} };
    yield { agent, path: '/tools' };
    yield { agent, path: '/approvals' };
  }
  for (const path of ['/health', '/ready', '/tools', '/nothing', '/.well-known/oauth-protected-resource'])
    yield { path };
  yield { agent: 'reader', method: 'no/such' };
  yield { agent: 'reader', method: 'tools/call', params: {} };
  yield { agent: 'reader', method: 'tools/call', params: { name: 'no_such_tool' } };
  yield { agent: 'reader', method: 'resources/read', params: { uri: 'parley://nothing' } };
  yield { agent: 'reader', method: 'prompts/get', params: { name: 'nothing' } };
  yield { method: 'tools/list' };
  for (const agent of ['reader', 'admin', 'lean']) {
    yield tool(agent, 'list_tools');
    yield tool(agent, 'get_all_schemas');
    yield tool(agent, 'get_all_schemas', { prefix: 'S' });
    for (const class_name of [...CLASSES, ...UNSEEN]) yield* readsOf(agent, class_name);
  }
  yield* albums('reader');
  yield* albums('asked');
  yield* mistakes('reader');
  yield* writes('writer');
  yield* writes('admin');
  yield* writes('asked');
}

const tool = (agent, name, args = {}, revision) => ({
  agent,
  revision,
  method: 'tools/call',
  params: { name, arguments: args },
});
const initialize = (protocolVersion) => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: 'answers', version: '1' },
});

function* readsOf(agent, class_name) {
  yield tool(agent, 'get_schema', { class_name });
  yield tool(agent, 'query_class', { class_name, limit: 2, order: 'objectId' });
  yield tool(agent, 'query_class', { class_name, limit: 2, order: '-createdAt,objectId', format: 'csv' });
  yield tool(agent, 'count_objects', { class_name });
  yield tool(agent, 'get_sample_objects', { class_name, limit: 1 });
  yield tool(agent, 'get_object', { class_name, object_id: 'nothing' });
  yield tool(agent, 'explain_query', { class_name, where: { objectId: 'x' } });
  yield tool(agent, 'aggregate', { class_name, pipeline: [{ $sort: { _id: 1 } }, { $limit: 2 }] });
  yield tool(agent, 'distinct', { class_name, field: 'createdAt', limit: 2, sort: 'asc' });
  yield tool(agent, 'group_by_date', { class_name, field: 'createdAt', interval: 'year' });
  yield tool(agent, 'export_data', { class_name, limit: 2, order: 'objectId', format: 'ndjson' });
}

function* albums(agent) {
  const class_name = 'Album';
  for (const where of [
    { genre: 'jazz' },
    { genre: { $in: ['jazz', 'rock'] }, trackCount: { $gt: 5 } },
    { $or: [{ genre: 'folk' }, { trackCount: { $lte: 6 } }] },
    { title: { $regex: '^A', $options: 'i' } },
    { tags: { $all: ['live'] } },
    { released: { $gt: { __type: 'Date', iso: '2000-01-01T00:00:00.000Z' } } },
    { artist: { $inQuery: { className: 'Artist', where: { country: 'US' } } } },
    { objectId: { $exists: true } },
    { archived: true },
    { $where: 'true' },
    { genre: { $bad: 1 } },
    { costPrice: 1 },
  ]) {
    yield tool(agent, 'query_class', { class_name, where, limit: 3, order: 'objectId' });
    yield tool(agent, 'count_objects', { class_name, where });
    yield tool(agent, 'export_data', { class_name, where, limit: 2, order: 'objectId' });
    yield tool(agent, 'group_by', { class_name, field: 'genre', where, sort: 'key_asc' });
  }
  for (const revision of REVISIONS)
    yield tool(
      agent,
      'query_class',
      { class_name, limit: 2, order: 'objectId', include: ['artist'], keys: ['title', 'artist.name'] },
      revision,
    );
  for (const format of ['json', 'csv', 'markdown', 'table', 'xml'])
    yield tool(agent, 'query_class', { class_name, limit: 3, order: 'objectId', format });
  for (const pipeline of [
    [
      { $match: { genre: 'jazz' } },
      { $group: { _id: '$artist', n: { $sum: 1 } } },
      { $sort: { n: -1, _id: 1 } },
    ],
    [
      { $lookup: { from: 'Artist', localField: 'artist', foreignField: '_id', as: 'who' } },
      { $sort: { _id: 1 } },
      { $limit: 2 },
    ],
    [{ $match: { $expr: { $gt: ['$trackCount', 10] } } }, { $count: 'n' }],
    [{ $out: 'x' }],
    [{ $project: { a: { $toString: '$title' } } }, { $sort: { _id: 1 } }, { $limit: 1 }],
    [{ $facet: { a: [{ $count: 'n' }], b: [{ $sort: { _id: 1 } }, { $limit: 1 }] } }],
    [{ $unionWith: 'SupplierContract' }],
    [],
    'x',
  ])
    yield tool(agent, 'aggregate', { class_name, pipeline });
  for (const operation of ['count', 'sum', 'avg', 'min', 'max'])
    yield tool(agent, 'group_by', {
      class_name,
      field: 'genre',
      operation,
      value_field: 'trackCount',
      sort: 'key_asc',
    });
  yield tool(agent, 'group_by', { class_name, field: 'tags', flatten_arrays: true, sort: 'key_asc' });
  yield tool(agent, 'group_by', { class_name, field: 'genre', dry_run: true });
  yield tool(agent, 'distinct', { class_name, field: 'genre', sort: 'asc' });
  yield tool(agent, 'get_objects', { class_name, ids: ['a', 'b'] });
  for (const format of ['csv', 'markdown', 'table', 'ndjson'])
    yield tool(agent, 'export_data', {
      class_name,
      limit: 3,
      order: 'objectId',
      format,
      columns: ['title', 'genre'],
    });
  yield tool(agent, 'semantic_search', { class_name: 'Review', query: 'warm sound' });
  yield tool(agent, 'find_similar', { class_name: 'Review', field: 'text', text: 'warm sound' });
  yield tool(agent, 'atlas_text_search', { class_name, query: 'blue' });
  yield tool(agent, 'call_method', { class_name, method_name: 'nothing' });
}

function* mistakes(agent) {
  const class_name = 'Album';
  for (const args of [
    {},
    { class_name: 7 },
    { class_name, limit: 'many' },
    { class_name, limit: -1 },
    { class_name, limit: 100_000 },
    { class_name, skip: 1e9 },
    { class_name, order: 'nope' },
    { class_name, order: 3 },
    { class_name, keys: ['nope'] },
    { class_name, keys: 'title' },
    { class_name, include: ['nope'] },
    { class_name, include: ['artist.nope.deeper.than.is.allowed'] },
    { class_name, where: 'x' },
    { class_name, where: [] },
    { class_name, where: '{"genre":"jazz"}' },
    { class_name, wher: {} },
    { className: class_name },
  ])
    for (const name of [
      'query_class',
      'count_objects',
      'export_data',
      'group_by',
      'get_objects',
      'semantic_search',
      'aggregate',
    ])
      yield tool(agent, name, args);
}

function* writes(agent) {
  const class_name = 'Album';
  yield tool(agent, 'create_object', { class_name, fields: { title: 'New', genre: 'jazz', trackCount: 3 } });
  yield tool(agent, 'create_object', { class_name, fields: { title: 'New', genre: 'polka' } });
  yield tool(agent, 'create_object', { class_name, fields: { nope: 1 } });
  yield tool(agent, 'create_object', { class_name });
  yield tool(agent, 'create_object', {
    class_name: 'Listing',
    data: { sku: 'x', format: 'vinyl', price: 3 },
  });
  yield tool(agent, 'create_object', { class_name: 'Listing', fields: { sku: 'x', orgId: 'southside' } });
  yield tool(agent, 'update_object', { class_name, object_id: 'nothing', fields: { title: 'x' } });
  yield tool(agent, 'delete_object', { class_name, object_id: 'nothing' });
  yield tool(agent, 'create_class', { class_name: 'Fresh', fields: { a: 'String' } });
  yield tool(agent, 'delete_class', { class_name: 'Fresh' });
}

const CHANGING = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/("(?:retry_after|retryAfter|elapsed_ms|duration_ms|durationMs|uptime\w*)":)[\d.]+/g, '$1<number>'],
  [/127\.0\.0\.1:\d+/g, '<host>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
];
/** Times stay where the seed has them: only those of this run are blanked. */
function comparable(text, seeded, fresh) {
  let shown = text.replace(CHANGING[0][0], (time) =>
    seeded.has(time) || Date.parse(time) < Date.now() - 86_400_000 ? time : '<time>',
  );
  for (const [pattern, instead] of CHANGING.slice(1)) shown = shown.replace(pattern, instead);
  // Ids that this run made, in the order of their first appearance.
  return shown.replace(/(object_?[iI]d\\*": ?\\*")([A-Za-z0-9]{10})(?=\\*")/g, (whole, before, id) => {
    if (seeded.has(id)) return whole;
    if (!fresh.has(id)) fresh.set(id, `<id ${fresh.size}>`);
    return `${before}${fresh.get(id)}`;
  });
}

/**
 * @param {string} url
 * @param {Asked} request
 */
async function ask(url, { agent, revision = '2025-11-25', method, params, path }) {
  /** @type {Record<string, string>} */
  const headers = agent ? { 'x-mcp-api-key': KEYS[agent] } : {};
  const response = path
    ? await fetch(`${url}${path}`, { headers })
    : await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': revision,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      });
  return { status: response.status, type: response.headers.get('content-type'), body: await response.text() };
}

async function answers() {
  const service = await start([join(root, 'dist/src/main.js')], {
    cwd: folderWith({ 'parley.yaml': stringify(configuration()) }),
    env: {
      PARSE_AGENT_ALLOW_WRITE_TOOLS: '1',
      PARSE_AGENT_ALLOW_RAW_CRUD: '1',
      PARSE_AGENT_ALLOW_SCHEMA_OPS: '1',
      PARSE_AGENT_ALLOW_RAW_SCHEMA: '1',
    },
    ready: /Parley listening on (\S+)\/mcp/,
  });
  const seeded = new Set(readFileSync(join(root, 'demo/seed.json'), 'utf8').match(/[A-Za-z0-9:.-]{10,24}/g));
  const fresh = new Map();
  const lines = [];
  for (const request of requests()) {
    const { body, ...head } = await ask(service.url, request);
    lines.push(JSON.stringify({ request, ...head, body: comparable(body, seeded, fresh) }));
  }
  await service.stop();
  return lines;
}

const now = await answers();
if (mode === 'record') {
  writeFileSync(file, `${now.join('\n')}\n`);
  console.log(`${now.length} answers recorded`);
} else {
  const before = readFileSync(file, 'utf8').trimEnd().split('\n');
  let differing = 0;
  for (let at = 0; at < Math.max(before.length, now.length); at += 1) {
    if (before[at] === now[at]) continue;
    differing += 1;
    console.log(`- ${before[at]}\n+ ${now[at]}\n`);
  }
  console.log(`${now.length} answers, ${differing} differ`);
  process.exitCode = differing === 0 ? 0 : 1;
}
