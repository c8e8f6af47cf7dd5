// What metrics and traces cost a call: the same service with and without them, on the same database, in one run.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { listen } from '../../tools/free-port.mjs';
import { compare } from './load.mjs';
import { folderWith, root, start } from './processes.mjs';

const headers = { 'x-mcp-api-key': 'bench-key' };
// In this process, whose work is not counted.
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}'));
});
const endpoint = `http://127.0.0.1:${await listen(collector)}/v1/traces`;

const database = await start(
  [join(root, 'dist/bundle/cli.js'), 'embedded', '--port', '0', '--seed', join(root, 'demo/seed.json')],
  { ready: /listening on (mongodb\S+)/ },
);
const service = (more, main = join(root, 'dist/bundle/main.js')) =>
  start(['--enable-source-maps', main], {
    cwd: folderWith({
      'parley.yaml': stringify({
        server: { port: 0, requestRateLimit: { limit: 1_000_000_000, window: 60 }, maxRunningCalls: null },
        database: { uri: database.url, name: 'parley' },
        agents: { bench: { rateLimit: 1_000_000_000 } },
        auth: [{ apiKey: 'bench-key', agent: 'bench' }],
        policy: {
          unlistedClasses: 'allow',
          suppressMasterKeyWarning: true,
          classes: { Listing: { fields: ['sku', 'format', 'price'] } },
        },
        ...more,
      }),
    }),
    ready: /Parley listening on (\S+)/,
  });

/** @type {[name: string, service: Awaited<ReturnType<typeof start>>][]} */
const candidates = [
  ['off', await service({})],
  ['off, once more', await service({})],
  ['metrics', await service({ metrics: { port: 0 } })],
  ['traces, none kept', await service({ traces: { endpoint, ratio: 0 } })],
  ['traces, one in ten', await service({ traces: { endpoint, ratio: 0.1 } })],
  ['traces, all', await service({ traces: { endpoint } })],
];
// Another build, to compare with: what the code costs while everything is off.
const [other] = process.argv.slice(2);
if (other) candidates.push([`off, ${other}`, await service({}, other)]);

const call = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const works = {
  query_class: call('tools/call', {
    name: 'query_class',
    arguments: { class_name: 'Listing', where: { format: 'vinyl' }, limit: 10 },
  }),
  'tools/list': call('tools/list', {}),
};
for (const [work, body] of Object.entries(works)) {
  const measured = await compare(
    candidates.map(([, service]) => ({ ...service, body, headers })),
    { count: 500 },
  );
  const base = measured[0].cpu;
  for (const [at, { cpu }] of measured.entries())
    console.log(
      `${work.padEnd(12)} ${candidates[at][0].padEnd(20)} ${cpu.toFixed(0).padStart(6)} µs CPU  ${(cpu / base).toFixed(2)}`,
    );
}
for (const [, running] of candidates) await running.stop();
await database.stop();
collector.closeAllConnections();
collector.close();
