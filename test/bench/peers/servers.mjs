// The servers that are measured side by side: how each is started, what it is asked for the same work, what it does besides or
// does not do.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { folderWith, root, SERVICE, start } from '../processes.mjs';
import { PLAIN_CLASSES, PLAIN_COLLECTION } from '../works.mjs';

const folder = join(root, 'test/bench/peers');
const KEY = 'bench-key';
const TENANT = 'northside';
const filter = { format: 'vinyl', orgId: TENANT };

/** Ten groups. */
const groups = [{ $group: { _id: '$stock', n: { $sum: 1 } } }, { $sort: { _id: 1 } }, { $limit: 10 }];
const pipeline = [{ $match: { orgId: TENANT } }, ...groups];

const ofCollection = {
  group: { name: 'group', arguments: { collection: 'Listing', pipeline } },
  find: { name: 'find', arguments: { collection: 'Listing', filter, limit: 10 } },
  count: { name: 'count', arguments: { collection: 'Listing', query: filter } },
  plainFind: { name: 'find', arguments: { collection: PLAIN_COLLECTION, filter, limit: 10 } },
  plainGroup: { name: 'group', arguments: { collection: PLAIN_COLLECTION, pipeline } },
};

const listening = /listening on (http\S+)/;
const built =
  (file) =>
  ({ uri, database }) =>
    start([join(folder, file)], { env: { MONGODB_URI: uri, BENCH_DATABASE: database }, ready: listening });

async function startMongoServer({ uri }) {
  const home = mkdtempSync(join(tmpdir(), 'parley-bench-'));
  const bin = join(folder, 'node_modules/mongodb-mcp-server/dist/esm/index.js');
  const options = ['--transport', 'http', '--httpPort', '0', '--readOnly', '--telemetry', 'disabled'];
  const service = await start([bin, ...options], {
    env: { HOME: home, MDB_MCP_CONNECTION_STRING: uri, MDB_MCP_LOGGERS: 'disk,mcp,stderr' },
    ready: /started on address: (\S+)/,
  });
  return { ...service, url: `${service.url}/mcp` };
}

function startParley({ uri, database, fastReads = false }) {
  const config = {
    server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
    database: { uri, name: database, fastReads },
    agents: { bench: { tenantId: TENANT, rateLimit: 1_000_000_000 } },
    auth: [{ apiKey: KEY, agent: 'bench' }],
    policy: {
      unlistedClasses: 'allow',
      suppressMasterKeyWarning: true,
      classes: {
        Listing: { fields: ['sku', 'format', 'price', 'stock'], tenantScope: { field: 'orgId' } },
        ...PLAIN_CLASSES,
      },
    },
  };
  return start(SERVICE, {
    cwd: folderWith({ 'parley.yaml': stringify(config) }),
    ready: /Parley listening on (\S+)/,
  });
}

const callsOfParley = () => ({
  find: {
    name: 'query_class',
    arguments: { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 },
  },
  group: { name: 'aggregate', arguments: { class_name: 'Listing', pipeline: groups } },
  count: { name: 'count_objects', arguments: { class_name: 'Listing', where: { format: 'vinyl' } } },
  plainFind: {
    name: 'query_class',
    arguments: { class_name: 'PlainListing', where: { format: 'vinyl' }, limit: 10 },
  },
  plainGroup: { name: 'aggregate', arguments: { class_name: 'PlainListing', pipeline: groups } },
});

export const SERVERS = [
  {
    name: 'SDK on node:http',
    start: built('plain-sdk.mjs'),
    calls: () => ofCollection,
    notes: 'three tools over the driver; no callers, policy, audit or limits',
  },
  {
    name: '@rekog/mcp-nest 2.0.5',
    start: built('nest-server.mjs'),
    calls: () => ofCollection,
    notes:
      'the same three tools; no callers, policy, audit or limits, unless guards of the application add them',
  },
  {
    name: 'mongodb-mcp-server 3.0.4',
    start: startMongoServer,
    calls: (database) => {
      const where = { connectionId: 'preconfigured', database, collection: 'Listing' };
      return {
        find: { name: 'find', arguments: { ...where, filter, limit: 10 } },
        count: { name: 'count', arguments: { ...where, query: filter } },
        group: { name: 'aggregate', arguments: { ...where, pipeline } },
        plainFind: { name: 'find', arguments: { ...where, collection: PLAIN_COLLECTION, filter, limit: 10 } },
        plainGroup: { name: 'aggregate', arguments: { ...where, collection: PLAIN_COLLECTION, pipeline } },
      };
    },
    notes:
      'no agents, policy of classes and fields or audit records; sessions, answers as events, a log on disk: its defaults',
  },
  {
    name: 'Parley',
    start: startParley,
    headers: { 'x-mcp-api-key': KEY },
    calls: callsOfParley,
    notes: 'API key, tenant and field policy, rate limit, audit record and log line for each call',
  },
  {
    name: 'Parley, fastReads',
    start: (database) => startParley({ ...database, fastReads: true }),
    headers: { 'x-mcp-api-key': KEY },
    calls: callsOfParley,
    notes: 'the same with `database.fastReads`: reads on connections beside the driver',
  },
];
