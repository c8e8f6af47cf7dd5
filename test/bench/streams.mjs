// `npm run bench:streams [COUNT]`: memory of that many listening streams, and the time for one change to reach all of them.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stringify } from 'yaml';
import { once } from './load.mjs';
import { folderWith, residentMegabytes, root, start } from './processes.mjs';

const count = Number(process.argv[2] ?? 5_000);
const now = () => performance.timeOrigin + performance.now();
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const service = await start(['--expose-gc', '--enable-source-maps', join(root, 'dist/bundle/main.js')], {
  cwd: folderWith({
    'parley.yaml': stringify({
      server: {
        port: 0,
        requestRateLimit: { limit: 1_000_000_000, window: 60 },
        maxRunningCalls: null,
        maxConcurrentDispatchers: null,
      },
      agents: { bench: { rateLimit: 1_000_000 } },
      auth: [{ anonymous: true, agent: 'bench' }],
      policy: { unlistedClasses: 'allow', suppressMasterKeyWarning: true },
      plugins: [join(root, 'test/bench/changing-lists.mjs')],
    }),
  }),
  ready: /Parley listening on (\S+)/,
});
const change = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'change_list', arguments: {} },
});
await once(service.url, change, {});
await pause(1_000);
const before = residentMegabytes(service.pid);

const clients = spawn(
  process.execPath,
  [join(root, 'test/bench/listeners.mjs'), service.url, String(count)],
  {
    stdio: ['pipe', 'pipe', 'inherit'],
  },
);
process.on('exit', () => clients.kill('SIGKILL'));
// Its error was printed: a process keeps at most 10,000 sessions.
clients.once('exit', (code) => {
  if (code) process.exit(code);
});
const lines = createInterface({ input: clients.stdout })[Symbol.asyncIterator]();
const said = async () => (await lines.next()).value;
await said();
await pause(3_000);
const open = residentMegabytes(service.pid);
const idleFrom = await service.cpuSeconds();
await pause(5_000);
const idle = ((await service.cpuSeconds()) - idleFrom) / 5;

const rounds = [];
for (let round = 0; round < 5; round += 1) {
  clients.stdin.write('await\n');
  const from = now();
  await once(service.url, change, {});
  const { p99, last } = JSON.parse((await said()).slice('heard '.length));
  rounds.push({ p99: p99 - from, last: last - from });
  await pause(500);
}
const after = residentMegabytes(service.pid);
clients.stdin.write('close\n');
await said();
await pause(10_000);
const left = residentMegabytes(service.pid);
clients.kill('SIGKILL');
await service.stop();

const median = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];
console.log(`${count} listening streams, Node ${process.version}`);
console.log(
  `memory each, open and idle       ${(((open - before) * 1024) / count).toFixed(1)} KB (resident ${before.toFixed(0)} -> ${open.toFixed(0)} MB)`,
);
console.log(`memory each, after five changes  ${(((after - before) * 1024) / count).toFixed(1)} KB`);
console.log(
  `one change to 99 % of them       ${median(rounds.map(({ p99 }) => p99)).toFixed(0)} ms, to the last ${median(rounds.map(({ last }) => last)).toFixed(0)} ms (medians of 5)`,
);
console.log(`CPU while idle (keep-alives)     ${(idle * 100).toFixed(0)} % of a core`);
console.log(`resident 10 s after all closed   ${left.toFixed(0)} MB`);
process.exit(0);
