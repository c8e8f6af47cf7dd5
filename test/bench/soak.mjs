// `npm run bench -- soak [minutes]`: memory of the service under a mixed load, told twelve times. Flat is what it should be.
import http from 'node:http';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { CONNECTIONS } from './load.mjs';
import { Conversation } from './peers/conversation.mjs';
import { cpuSeconds, folderWith, residentMegabytes, root, SERVICE, start } from './processes.mjs';

const MINUTES = Number(process.argv[2] ?? 10);
const LOOKS = 12;

const database = await start(
  [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', '0', '--seed', join(root, 'demo/seed.json')],
  { ready: /listening on (mongodb\S+)/ },
);
const config = stringify({
  server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
  database: { uri: database.url, name: 'parley' },
  agents: { bench: { tenantId: 'northside', rateLimit: 1_000_000_000 } },
  auth: [{ apiKey: 'bench-key', agent: 'bench' }],
  policy: {
    suppressMasterKeyWarning: true,
    classes: { Listing: { fields: ['sku', 'format', 'price', 'stock'], tenantScope: { field: 'orgId' } } },
  },
});
const service = await start(SERVICE, {
  cwd: folderWith({ 'parley.yaml': config }),
  ready: /Parley listening on (\S+)/,
});

const where = { format: 'vinyl' };
const tool = (name, args) => ['tools/call', { name, arguments: { class_name: 'Listing', ...args } }];
/** What one client asks after the other; the last is refused. */
const REQUESTS = [
  ['tools/list', {}],
  tool('query_class', { where, limit: 10 }),
  tool('query_class', { order: '-price', limit: 100 }),
  tool('count_objects', { where }),
  tool('aggregate', { pipeline: [{ $group: { _id: '$format', n: { $sum: 1 } } }] }),
  tool('query_class', { where: { costPrice: 1 } }),
];

const ends = performance.now() + MINUTES * 60_000;
const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
let asked = 0;
async function client() {
  while (performance.now() < ends) {
    const talk = await new Conversation(service.url, agent, { 'x-mcp-api-key': 'bench-key' }).open();
    for (const [method, params] of REQUESTS) {
      await talk.ask(method, params);
      asked += 1;
    }
    await talk.close();
  }
}
const began = performance.now();
const looks = [];
const looking = setInterval(
  () => {
    const at = (performance.now() - began) / 60_000;
    const megabytes = residentMegabytes(service.pid);
    looks.push(megabytes);
    console.log(`${at.toFixed(1)} min  ${String(asked).padStart(8)} requests  ${megabytes.toFixed(0)} MB`);
  },
  (MINUTES * 60_000) / LOOKS,
);
await Promise.all(Array.from({ length: CONNECTIONS }, client));
clearInterval(looking);
agent.destroy();
const half = looks.slice(looks.length >> 1);
const perRequest = (cpuSeconds(service.pid) / asked) * 1000;
console.log(
  `second half: ${Math.min(...half).toFixed(0)} – ${Math.max(...half).toFixed(0)} MB; ${perRequest.toFixed(2)} ms CPU a request, ` +
    `${asked} requests in ${MINUTES} min, Node ${process.version}`,
);
await service.stop();
await database.stop();
