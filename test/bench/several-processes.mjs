// `node test/bench/several-processes.mjs`: two processes of one service (`server.processes`) against one, both with Redis.
// Database, Redis and the client of this measurement need cores of their own. Where there are only two, calls per second show
// what is left beside them: so the work that is compared is a tool that computes, and the CPU of a query is given beside it.
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startRedisServer } from '../../tools/redis-server.mjs';
import { median, once, request } from './load.mjs';
import { root } from './processes.mjs';
import { call, HEADERS, startDatabase, startParley, WORKS } from './works.mjs';

/** Several for each process: the system shares connections out, not requests. */
const CONNECTIONS = 16;
const TICKS_PER_SECOND = 100;
const BUSY = call('busy', { rounds: 1_000_000 });

const statOf = (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');

/** A service and the processes that it started. */
function familyOf(pid) {
  const family = [String(pid)];
  for (const name of readdirSync('/proc'))
    try {
      if (/^\d+$/.test(name) && statOf(name)[1] === String(pid)) family.push(name);
    } catch {
      // It has ended meanwhile.
    }
  return family;
}

/** CPU seconds of a service and of the processes that it started. */
const cpuSecondsOf = (pid) =>
  familyOf(pid).reduce((sum, each) => {
    const fields = statOf(each);
    return sum + (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  }, 0);

/** Calls per second, and the service's CPU microseconds for each. */
async function loaded({ url, pid }, body, seconds) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const ends = performance.now() + seconds * 1000;
  const cpu = cpuSecondsOf(pid);
  const began = performance.now();
  let done = 0;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (performance.now() < ends) {
        const { status } = await request(agent, url, body, HEADERS);
        if (status !== 200) throw new Error(`answered ${status}`);
        done += 1;
      }
    }),
  );
  const took = (performance.now() - began) / 1000;
  agent.destroy();
  return { perSecond: done / took, cpu: ((cpuSecondsOf(pid) - cpu) / done) * 1e6 };
}

/** @returns calls per second and CPU of both, and the ratios of two processes to one, medians over interleaved rounds */
async function compared([one, two], body, { rounds, seconds }) {
  for (const service of [one, two]) await loaded(service, body, seconds);
  const samples = [];
  for (let round = 0; round < rounds; round += 1)
    samples.push([await loaded(one, body, seconds), await loaded(two, body, seconds)]);
  const middle = (pick) => median(samples.map(pick));
  return {
    perSecond: [middle(([first]) => first.perSecond), middle(([, second]) => second.perSecond)],
    cpu: [middle(([first]) => first.cpu), middle(([, second]) => second.cpu)],
    faster: middle(([first, second]) => second.perSecond / first.perSecond),
    dearer: middle(([first, second]) => second.cpu / first.cpu),
  };
}

export async function twoAgainstOne(uri, { rounds = 7, seconds = 1.5 } = {}) {
  const redis = await startRedisServer();
  const plugins = [join(root, 'test/bench/busy-tool.mjs')];
  const withProcesses = (processes) =>
    startParley({ uri, plugins, redis: { url: redis.url }, server: { processes } });
  const [one, two] = [await withProcesses(1), await withProcesses(2)];
  for (const { url } of [one, two]) {
    const { result } = JSON.parse((await once(url, BUSY, HEADERS)).text);
    if (result?.isError !== false) throw new Error('the tool does not compute');
  }
  const busy = await compared([one, two], BUSY, { rounds, seconds });
  const query = await compared([one, two], WORKS[0].own, { rounds, seconds });
  await Promise.all([one.stop(), two.stop()]);
  await redis.close();
  return { busy, query };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const database = await startDatabase();
  const found = await twoAgainstOne(database.url);
  for (const [name, { perSecond, cpu, faster, dearer }] of Object.entries(found))
    console.log(
      `${name}: ${perSecond.map((each) => each.toFixed(0)).join(' → ')} calls a second (${faster.toFixed(2)} ×), ` +
        `${cpu.map((each) => each.toFixed(0)).join(' → ')} µs CPU each (${dearer.toFixed(2)} ×)`,
    );
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0].model}`);
  await database.stop();
}
