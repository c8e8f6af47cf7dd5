// What metrics and traces cost a call: the same service with and without them, on the same database, in one run.
import { createServer } from 'node:http';
import { listen } from '../../tools/free-port.mjs';
import { compare, printRows } from './load.mjs';
import { HEADERS, LIST, startDatabase, startParley, WORKS } from './works.mjs';

// In this process, whose work is not counted.
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}'));
});
const endpoint = `http://127.0.0.1:${await listen(collector)}/v1/traces`;

const database = await startDatabase();
const service = (more) => startParley({ uri: database.url, ...more });

/** @type {[name: string, service: Awaited<ReturnType<typeof startParley>>][]} */
const candidates = [
  ['off', await service({})],
  ['off, once more', await service({})],
  ['metrics', await service({ metrics: { port: 0 } })],
  ['traces, none kept', await service({ traces: { endpoint, ratio: 0 } })],
  ['traces, one in ten', await service({ traces: { endpoint, ratio: 0.1 } })],
  ['traces, all', await service({ traces: { endpoint } })],
];

for (const [work, body] of Object.entries({ query_class: WORKS[0].own, 'tools/list': LIST })) {
  const measured = await compare(
    candidates.map(([, service]) => ({ ...service, body, headers: HEADERS })),
    { count: 500 },
  );
  printRows(
    candidates.map(([name], at) => {
      const { cpu } = measured[at];
      return [work, name, `${cpu.toFixed(0)} µs CPU`, (cpu / measured[0].cpu).toFixed(2)];
    }),
  );
}
for (const [, running] of candidates) await running.stop();
await database.stop();
collector.closeAllConnections();
collector.close();
