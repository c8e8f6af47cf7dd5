// What the figures are compared with: a JSON-RPC handler on node:http without any of Parley's work.
// BENCH_BYTES: answer tools/list with exactly these bytes, made beforehand, or with BENCH_SERIALIZE serialised for each request.
// MONGODB_URI: answer query_class, count_objects and aggregate with the same operations, with BENCH_COMMANDS as commands by hand.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { MongoClient } from 'mongodb';
import { listen } from '../../tools/free-port.mjs';

const listing = process.env.BENCH_BYTES
  ? JSON.parse(readFileSync(process.env.BENCH_BYTES, 'utf8')).result
  : null;
const bytes = JSON.stringify(listing);
const serializes = process.env.BENCH_SERIALIZE === '1';
const client = process.env.MONGODB_URI ? new MongoClient(process.env.MONGODB_URI) : null;
const database = client?.db('parley');
const LIMIT = { maxTimeMS: 25_000, comment: 'bench' };

/** The work of each tool, by hand, with the methods of the driver. */
const METHODS = {
  query_class: async (collection, { limit, where }) => {
    const rows = await collection.find(where, { limit, ...LIMIT }).toArray();
    return { result_count: rows.length, results: rows };
  },
  count_objects: async (collection, { where }) => ({
    count: await collection.countDocuments(where, LIMIT),
  }),
  aggregate: async (collection, { pipeline }) => {
    const rows = await collection.aggregate(pipeline, LIMIT).toArray();
    return { result_count: rows.length, results: rows };
  },
};

/** The same as one command each: what is left of a call of Parley beside it is Parley's own part. */
const COMMANDS = {
  query_class: async ({ collectionName: find }, { limit, where: filter }) => {
    const { cursor } = await run({ find, filter, limit, singleBatch: true });
    return { result_count: cursor.firstBatch.length, results: cursor.firstBatch };
  },
  count_objects: async ({ collectionName: aggregate }, { where }) => {
    const pipeline = [{ $match: where }, { $group: { _id: 1, n: { $sum: 1 } } }];
    const { cursor } = await run({ aggregate, pipeline, cursor: {} });
    return { count: cursor.firstBatch[0]?.n ?? 0 };
  },
  aggregate: async ({ collectionName: aggregate }, { pipeline }) => {
    const { cursor } = await run({ aggregate, pipeline, cursor: {} });
    return { result_count: cursor.firstBatch.length, results: cursor.firstBatch };
  },
};
const run = (command) => /** @type {import('mongodb').Db} */ (database).command({ ...command, ...LIMIT });
const TOOLS = process.env.BENCH_COMMANDS === '1' ? COMMANDS : METHODS;

async function answer({ params: { name, arguments: given } }) {
  const found = await TOOLS[name](database?.collection(given.class_name), given);
  const data = { class_name: given.class_name, ...found };
  return { content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: data };
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const message = JSON.parse(Buffer.concat(chunks).toString());
    const send = (body) => {
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    };
    if (message.method === 'tools/list') {
      const result = serializes ? JSON.stringify(listing) : bytes;
      return send(`{"jsonrpc":"2.0","id":${message.id},"result":${result}}`);
    }
    void answer(message).then((result) => send(JSON.stringify({ jsonrpc: '2.0', id: message.id, result })));
  });
});
console.log(`bare server on http://127.0.0.1:${await listen(server)}/`);
