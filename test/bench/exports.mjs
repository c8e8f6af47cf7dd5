// `npm run bench -- exports [rows]`: one export of many rows, and what it does to the memory of the service.
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { stringify } from 'yaml';
import { folderWith, residentMegabytes, root, start } from './processes.mjs';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const BATCH = 20_000;
const schemas = [{ className: 'Reading', fields: { sensor: { type: 'String' }, value: { type: 'Number' } } }];
const seed = JSON.stringify({ schemas, users: [], roles: [], sessions: [], objects: {} });
const database = await start(
  [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', '0', '--seed', 'seed.json'],
  { cwd: folderWith({ 'seed.json': seed }), ready: /listening on (mongodb\S+)/ },
);
const client = await MongoClient.connect(database.url);
/** @type {import('mongodb').Collection<{ _id: string }>} */
const readings = client.db('parley').collection('Reading');
const at = new Date();
for (let from = 0; from < ROWS; from += BATCH) {
  const rows = Array.from({ length: Math.min(BATCH, ROWS - from) }, (_, index) => ({
    _id: `r${String(from + index).padStart(9, '0')}`,
    _created_at: at,
    _updated_at: at,
    sensor: `sensor ${(from + index) % 1000}`,
    value: from + index,
  }));
  await readings.insertMany(rows);
}
await client.close();

const config = stringify({
  server: { port: 0 },
  database: { uri: database.url, name: 'parley' },
  policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true },
});
const service = await start([join(root, 'dist/bundle/main.js')], {
  cwd: folderWith({ 'parley.yaml': config }),
  ready: /Parley listening on (\S+)/,
});
const { origin } = new URL(service.url);
const order = async () => {
  const args = { class_name: 'Reading', delivery: 'resource' };
  const params = { name: 'export_data', arguments: args };
  const response = await fetch(service.url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  const { result } = /** @type {any} */ (await response.json());
  return JSON.parse(result.content[0].text).path;
};
const response = await fetch(origin + (await order()));
const before = residentMegabytes(service.pid);
const began = performance.now();
let [lines, bytes, peak] = [0, 0, before];
for await (const chunk of /** @type {ReadableStream<Uint8Array>} */ (response.body)) {
  bytes += chunk.length;
  for (let found = chunk.indexOf(10); found >= 0; found = chunk.indexOf(10, found + 1)) lines += 1;
  peak = Math.max(peak, residentMegabytes(service.pid));
}
const seconds = (performance.now() - began) / 1000;
console.log(
  `${lines - 1} rows, ${(bytes / 1e6).toFixed(0)} MB in ${seconds.toFixed(1)} s; ` +
    `memory of the service ${before.toFixed(0)} MB before, at most ${peak.toFixed(0)} MB while it was sent`,
);
await service.stop();
await database.stop();
if (lines - 1 !== ROWS) process.exit(1);
