// The whole installation on one machine: a database, Redis, two replicas, nginx before them. SIGHUP replaces the replicas, one after the other.
import { EmbeddedDatabase } from '@parley/server';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Child } from './fleet/child.js';
import { freePort } from './fleet/free-port.js';
import { Proxy } from './fleet/proxy.js';

// For a start without one. MONGODB_URI names a real one.
const database = process.env['MONGODB_URI']
  ? null
  : await EmbeddedDatabase.start({ seed: JSON.parse(readFileSync('seed.json', 'utf8')) as object });
const redisPort = await freePort();
const redis = await Child.start(
  ['redis-server', '--port', `${redisPort}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
  { ready: /(Ready to accept connections)/ },
);
const startReplica = () =>
  Child.start([process.execPath, fileURLToPath(new URL('replica.js', import.meta.url))], {
    ready: /replica listening on http:\/\/(\S+)/,
    env: {
      PORT: '0',
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      ...(database && { MONGODB_URI: database.uri }),
    },
  });
const replicas = await Promise.all([startReplica(), startReplica()]);
const proxy = new Proxy(Number(process.env['PORT'] ?? 8443) || (await freePort()));
const rotate = () => proxy.rotate(replicas.map(({ address }) => address));
await rotate();

/** Each is followed by a new one that listens already: only then it leaves the rotation, and ends what it was doing. */
async function deploy(): Promise<void> {
  for (let left = replicas.length; left > 0; left -= 1) {
    replicas.push(await startReplica());
    const old = replicas.shift();
    await rotate();
    await old?.stop();
  }
  console.log(`Deployed: ${replicas.map(({ pid }) => pid).join(', ')}`);
}

let deploying = Promise.resolve();
process.on('SIGHUP', () => {
  deploying = deploying.then(deploy);
});
async function end(): Promise<void> {
  await proxy.stop();
  await Promise.all(replicas.map((replica) => replica.stop()));
  await redis.stop();
  await database?.close();
  process.exit(0);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end());
console.log(`Certificate: ${proxy.certificate}\nParcels listening on ${proxy.origin}`);
