// The official conformance suite at every revision we speak, against two replicas behind a proxy without stickiness.
// `--server` only starts them (on $PORT) for a runner of your own; `--scenario NAME` runs one scenario.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, start } from '../test/bench/processes.mjs';
import { build } from './build/build.mjs';
import { NEWER_NODE } from './newer-node.mjs';
import { startRedisServer } from './redis-server.mjs';
import { startRoundRobin } from './round-robin.mjs';

const REVISIONS = [
  { revision: '2026-07-28', which: ['--requirements', '2026-07-28'] },
  { revision: '2025-11-25', which: ['--requirements', '2025-11-25'] },
  { revision: '2025-06-18', which: ['--suite', 'all', '--spec-version', '2025-06-18'] },
  { revision: '2025-03-26', which: ['--suite', 'all', '--spec-version', '2025-03-26'] },
];

const partner = join(root, 'tools', 'conformance', 'node_modules');
const { values } = parseArgs({
  options: { server: { type: 'boolean' }, scenario: { type: 'string' }, revision: { type: 'string' } },
});

/** One replica of the test-only profile, on a free port. */
async function startReplica(redisUrl) {
  const { url, stop } = await start([join(root, 'dist', 'bundle', 'main.js')], {
    env: {
      PARLEY_CONFIG: join(root, 'test', 'conformance', 'parley.yaml'),
      PORT: '0',
      REDIS_URL: redisUrl,
    },
    ready: /Parley listening on \S+:(\d+)\//,
  });
  return { hostname: '127.0.0.1', port: Number(url), stop };
}

function runRevision(revision, which, url) {
  const runner = join(partner, '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
  const only = values.scenario
    ? ['--scenario', values.scenario, '--spec-version', revision, '--verbose']
    : which;
  const child = spawn(NEWER_NODE, [runner, 'server', '--url', url, ...only], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return new Promise((resolve) => {
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.once('exit', (status) => resolve({ revision, status, output }));
  });
}

if (build({ ifNeeded: true }) !== 0) process.exit(1);
if (!values.server && !existsSync(partner)) {
  const installed = spawnSync(process.execPath, [join(root, 'tools', 'test-partners.mjs')], {
    stdio: 'inherit',
  });
  if (installed.status !== 0) process.exit(installed.status ?? 1);
}

const redis = await startRedisServer();
const replicas = await Promise.all([startReplica(redis.url), startReplica(redis.url)]);
const proxy = await startRoundRobin(replicas, values.server ? Number(process.env.PORT ?? 3000) : 0);
// The runner's check against DNS rebinding wants this name.
const url = `http://localhost:${proxy.port}/mcp`;
const stop = async () => {
  proxy.close();
  await Promise.all(replicas.map((replica) => replica.stop()));
  await redis.close();
};

if (values.server) {
  console.log(`two replicas behind ${url}`);
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stop());
} else {
  const asked = REVISIONS.filter(({ revision }) => !values.revision || values.revision === revision);
  // Most of a run is waiting, for what is promised not to come.
  const runs = await Promise.all(asked.map(({ revision, which }) => runRevision(revision, which, url)));
  for (const { revision, status, output } of runs) {
    const total = /^Total: .*$/m.exec(output)?.[0] ?? 'no total';
    console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${revision}  ${total}`);
    if (status === 0 && !values.scenario) continue;
    console.log(
      values.scenario
        ? output
        : output
            .split('\n')
            .filter((line) => /^\s*✗/.test(line))
            .join('\n'),
    );
  }
  const failed = runs.filter(({ status }) => status !== 0).length;
  await stop();
  process.exitCode = failed === 0 ? 0 : 1;
}
