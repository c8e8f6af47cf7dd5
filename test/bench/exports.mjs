// `npm run bench -- exports [rows]`: one export of many rows, and what it does to the memory of the service.
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import { once } from './load.mjs';
import { folderWith, residentMegabytes } from './processes.mjs';
import { call, HEADERS, OPEN, startDatabase, startParley } from './works.mjs';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const BATCH = 20_000;
const schemas = [{ className: 'Reading', fields: { sensor: { type: 'String' }, value: { type: 'Number' } } }];
const seed = JSON.stringify({ schemas, users: [], roles: [], sessions: [], objects: {} });
const database = await startDatabase({ seed: join(folderWith({ 'seed.json': seed }), 'seed.json') });
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

const service = await startParley({ uri: database.url, policy: OPEN });
const ordered = await once(
  service.url,
  call('export_data', { class_name: 'Reading', delivery: 'resource' }),
  HEADERS,
);
const { path } = JSON.parse(JSON.parse(ordered.text).result.content[0].text);
const response = await fetch(new URL(path, service.url), { headers: HEADERS });
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
