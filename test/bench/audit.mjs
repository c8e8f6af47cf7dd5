import { join } from 'node:path';
import { stringify } from 'yaml';
import { compare } from './load.mjs';
import { folderWith, root, start } from './processes.mjs';

// What recording a call costs: server CPU per request with and without sinks, in one run.

const main = join(root, 'dist', 'bundle', 'main.js');
const headers = { 'x-mcp-api-key': 'bench-key' };
const body = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'query_class',
    arguments: { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 },
  },
});

const database = await start(
  [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', '0', '--seed', join(root, 'demo/seed.json')],
  { ready: /listening on (mongodb\S+)/ },
);
const file = { kind: 'file', path: './records.jsonl' };
const WAYS = {
  'no sink': [],
  'file, buffer': [{ ...file, onFailure: 'buffer' }],
  'file, refuse, fsync interval': [file],
  'file, refuse, fsync always': [{ ...file, fsync: 'always' }],
  'mongodb, refuse': [{ kind: 'mongodb' }],
};

const services = [];
for (const sinks of Object.values(WAYS)) {
  const config = {
    server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
    database: { uri: database.url, name: 'parley' },
    agents: { bench: { rateLimit: 1_000_000_000 } },
    auth: [{ apiKey: 'bench-key', agent: 'bench' }],
    policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true },
    audit: { sinks },
  };
  const cwd = folderWith({ 'parley.yaml': stringify(config) });
  services.push(await start(['--enable-source-maps', main], { cwd, ready: /Parley listening on (\S+)/ }));
}
const measured = await compare(
  services.map((service) => ({ ...service, body, headers })),
  { count: 1000 },
);
const [without] = measured;
for (const [index, name] of Object.keys(WAYS).entries()) {
  const { cpu } = measured[index];
  console.log(`${name.padEnd(30)} ${(cpu / without.cpu).toFixed(2)} (${cpu.toFixed(0)} µs CPU)`);
}
await Promise.all([...services, database].map((one) => one.stop()));
