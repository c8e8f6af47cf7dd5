// What is measured: one service and the same work by a bare handler on the same database.
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { MongoClient, ObjectId } from 'mongodb';
import { stringify } from 'yaml';
import { once } from './load.mjs';
import { folderWith, root, SERVICE, start } from './processes.mjs';

export const HEADERS = { 'x-mcp-api-key': 'bench-key' };
export const READY = /Parley listening on (\S+)/;
const TENANT = 'northside';

export const message = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
export const call = (name, args) => message('tools/call', { name, arguments: args });
export const LIST = message('tools/list', {});
/** A policy that hides no class. */
export const OPEN = { unlistedClasses: 'allow', suppressMasterKeyWarning: true };

const LISTING = { fields: ['sku', 'format', 'price', 'stock'], tenantScope: { field: 'orgId' } };
export const PLAIN_COLLECTION = 'listings';
/** The rows of `Listing` in a collection that Parse did not write. */
export const PLAIN_CLASSES = {
  PlainListing: { storage: 'plain', collection: PLAIN_COLLECTION, ...LISTING },
};

/**
 * Configuration of a measured service: limits that no load reaches, and so many classes in the policy. Other sections are written as
 * they are given, in place of those here.
 * @param {{
 *   uri?: string,
 *   name?: string,
 *   classes?: number,
 *   plain?: boolean,
 *   fastReads?: boolean,
 *   server?: object,
 * } & Record<string, unknown>} options `uri`: the service's own demo without one; `plain`: the plain class as well; `fastReads`: on
 *   connections beside the driver
 */
export function configuration({
  uri,
  name = 'parley',
  classes = 0,
  plain = false,
  fastReads = false,
  server = {},
  ...more
}) {
  const declared = Object.fromEntries(
    Array.from({ length: classes }, (_, index) => [
      `Made${index}`,
      { fields: ['name'], tenantScope: { field: 'orgId' } },
    ]),
  );
  return stringify({
    server: {
      port: 0,
      requestRateLimit: { limit: 1_000_000_000, window: 60 },
      maxRunningCalls: null,
      ...server,
    },
    ...(uri !== undefined && { database: { uri, name, fastReads } }),
    agents: {
      bench: { tenantId: TENANT, rateLimit: 1_000_000_000 },
      lean: { tools: { profile: 'lean' }, rateLimit: 1_000_000_000 },
      clerk: { tenantId: TENANT, identity: { user: 'uNorthClk1' }, rateLimit: 1_000_000_000 },
    },
    auth: [
      { apiKey: 'bench-key', agent: 'bench' },
      { apiKey: 'lean-key', agent: 'lean' },
      { apiKey: 'clerk-key', agent: 'clerk' },
    ],
    policy: {
      ...OPEN,
      classes: {
        ...declared,
        Listing: LISTING,
        Song: {},
        ...(plain && PLAIN_CLASSES),
      },
    },
    ...more,
  });
}

/**
 * @param {Parameters<typeof configuration>[0]} options
 * @param {{ env?: Record<string, string>, flags?: string[] }} process `flags` of Node, beside those of `npm start`
 */
export const startParley = (options, { env = {}, flags = [] } = {}) =>
  start([...flags, ...SERVICE], {
    cwd: folderWith({ 'parley.yaml': configuration(options) }),
    env,
    ready: READY,
  });

/**
 * The embedded database in a process of its own.
 * @param {{ seed?: string | null, clock?: boolean }} [options] `seed`: the demo without one, nothing with null
 */
export const startDatabase = ({ seed = join(root, 'demo/seed.json'), clock } = {}) =>
  start(
    [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', '0', ...(seed === null ? [] : ['--seed', seed])],
    { ready: /listening on (mongodb\S+)/, clock },
  );

/** Copies `Listing` as an application without Parse would write it, unless that was done before. */
export async function copyPlain(uri, name = 'parley') {
  const client = await MongoClient.connect(uri);
  const database = client.db(name);
  const copies = database.collection(PLAIN_COLLECTION);
  if ((await copies.countDocuments()) === 0) {
    const rows = await database.collection('Listing').find().toArray();
    await copies.insertMany(
      rows.map(({ _created_at, _updated_at, _p_album, _id, _rperm, _wperm, _acl, ...columns }) => ({
        _id: new ObjectId(),
        ...columns,
        album: _p_album?.split('$')[1],
        createdAt: _created_at,
        updatedAt: _updated_at,
      })),
    );
    await copies.createIndex({ orgId: 1, stock: 1 });
  }
  await client.close();
}

/**
 * A handler on `node:http` that does the same work by hand, and answers `tools/list` with the bytes of the service.
 * @param {{ url: string }} service
 * @param {string} uri
 * @param {Record<string, string>} env
 */
export async function startBare(service, uri, env = {}) {
  const { text } = await once(service.url, LIST, HEADERS);
  return start([join(root, 'test/bench/bare-server.mjs')], {
    env: { MONGODB_URI: uri, BENCH_BYTES: join(folderWith({ 'bytes.json': text }), 'bytes.json'), ...env },
    ready: /on (\S+)/,
  });
}

const GROUPS = [{ $group: { _id: '$stock', n: { $sum: 1 } } }, { $sort: { _id: 1 } }, { $limit: 10 }];
const vinyl = { format: 'vinyl' };
const ofTenant = { ...vinyl, orgId: TENANT };

/**
 * What is asked for in one measured request, of the service and beside it.
 * @typedef {object} Work
 * @property {string} name
 * @property {string} own request of the service
 * @property {string} [bare] of the bare handler
 * @property {string} [parse] of the Parse class with the same rows
 * @property {number} [target] ratio that is wanted
 * @property {number} [fastTarget] with `fastReads`
 * @property {number} [ownPart] µs of CPU that a call may cost more than the same command by hand
 * @property {number} [count] of requests, for one of the usual works
 * @property {number} [warmUp]
 */

/**
 * Work that the service and the bare handler do alike.
 * @type {Work[]}
 */
export const WORKS = [
  {
    name: 'query_class, 10 rows',
    own: call('query_class', { class_name: 'Listing', where: vinyl, limit: 10 }),
    bare: call('query_class', { class_name: 'Listing', where: ofTenant, limit: 10 }),
    target: 1,
    fastTarget: 2,
    ownPart: 85,
  },
  {
    name: 'count_objects',
    own: call('count_objects', { class_name: 'Listing', where: vinyl }),
    bare: call('count_objects', { class_name: 'Listing', where: ofTenant }),
    target: 1,
    fastTarget: 1,
    ownPart: 60,
  },
  {
    name: 'aggregate, ten groups',
    own: call('aggregate', { class_name: 'Listing', pipeline: GROUPS }),
    bare: call('aggregate', { class_name: 'Listing', pipeline: [{ $match: { orgId: TENANT } }, ...GROUPS] }),
    target: 1,
    fastTarget: 1,
    ownPart: 105,
  },
  { name: 'tools/list, bytes ready', own: LIST, bare: LIST, target: 0.9, count: 4 },
];

/** The same call of the Parse class and of the plain class with its rows. */
export const PLAIN_WORKS = [WORKS[0], WORKS[2]].map(({ name, own }) => ({
  name: `${name}, plain class`,
  own: own.replace('"Listing"', '"PlainListing"'),
  parse: own,
}));

/** Too long for as many requests; the bare handler sends the fifty rows that Parley shows of a thousand. */
export const THOUSAND = {
  name: 'query_class, limit 1000',
  own: call('query_class', { class_name: 'Song', limit: 1000 }),
  bare: call('query_class', { class_name: 'Song', where: {}, limit: 50 }),
};

/**
 * Throws when an answer is not the work: nothing else may be measured.
 * @param {{ url: string }} service
 * @param {{ url: string }} bare
 * @param {Work} work
 */
export async function prove(service, bare, { name, own, bare: base }) {
  const [first, second] = await Promise.all([once(service.url, own, HEADERS), once(bare.url, base)]);
  const sizes = [first, second].map(({ text }) => {
    const { result } = JSON.parse(text);
    if (!result || result.isError) throw new Error(`${name}: ${text.slice(0, 300)}`);
    return text.length;
  });
  return sizes;
}

/**
 * Throws when the plain class answers with other rows than the Parse class.
 * @param {{ url: string }} service
 * @param {Work} work
 */
export async function provePlain(service, { name, own, parse }) {
  const [plain, parsed] = await Promise.all(
    [own, parse].map(async (body) => {
      const { text } = await once(service.url, body, HEADERS);
      const { result } = JSON.parse(text);
      if (!result || result.isError) throw new Error(`${name}: ${text.slice(0, 300)}`);
      // The ids are of other kinds.
      return result.structuredContent.results.map(({ objectId: _id, ...columns }) => columns);
    }),
  );
  if (plain.length !== 10 || !isDeepStrictEqual(plain, parsed)) throw new Error(`${name}: other rows`);
}
