import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { BUDGET_STEPS } from '#core';
import type { SharedState } from '../ports/shared-state.js';
import { openRedisState } from '../redis/open-redis-state.js';
import { BUDGET_WINDOW_UNDER_TEST } from './budget-store.contract.js';
import type { RedisSettings } from '#core';
import { toArguments, waitForExit, launchAtFreePort, type RedisServer, startRedis } from './redis-server.js';
import { startRedisCluster } from './redis-topologies.js';

/** One Redis as replicas see it, with control over its time and its keys. */
export interface RedisFixture {
  readonly settings: RedisSettings;
  /** The state of one replica. Replicas with one prefix share everything. */
  enter(prefix?: string): Promise<SharedState>;
  /** Closes what was entered: every client of a cluster asks it for its nodes once a second, and many of them all the time. */
  leave(): Promise<void>;
  /** A prefix that no other test uses. */
  freshPrefix(): string;
  /** Advances the time of all keys of a prefix: entries that would have expired by then are removed. */
  pass(prefix: string, milliseconds: number): Promise<void>;
  /** Every key of a prefix with a plain client of the server that holds it, to read and to corrupt it. */
  keys(prefix: string): Promise<readonly { readonly key: string; readonly client: Redis }[]>;
  close(): Promise<void>;
}

const SILENT = { warn: () => undefined };

/** The window steps of a budget under test. */
async function ageSteps(client: Redis, key: string, milliseconds: number): Promise<void> {
  const steps = Math.floor((milliseconds * BUDGET_STEPS) / (BUDGET_WINDOW_UNDER_TEST * 1000));
  if (steps === 0) return;
  const aged = Object.entries(await client.hgetall(key)).map(([field, used]): [string, string] => {
    const [step = '0', quantity = ''] = field.split(':');
    return [`${Number(step) - steps}:${quantity}`, used];
  });
  const left = await client.pttl(key);
  await client
    .multi()
    .del(key)
    .hset(key, ...aged.flat())
    .pexpire(key, left)
    .exec();
}

/** Times of calls are stored as values, which do not expire with their key. */
async function ageStamps(client: Redis, key: string, milliseconds: number): Promise<void> {
  const stamps = await client.lrange(key, 0, -1);
  for (const [at, stamp] of stamps.entries()) await client.lset(key, at, Number(stamp) - milliseconds * 1000);
}

/** Undecided cases, of all, of a tenant and of a requester, by when they expire. */
function isIndexOfCases(key: string): boolean {
  return key.includes('{approvals:') && /:(pending|tenant:[^:]+|of:[^:]+)$/.test(key);
}

/** Expiry times of the members of a share or an index are stored as values too. */
async function ageMembers(client: Redis, key: string, milliseconds: number): Promise<void> {
  if (key.endsWith(':weights')) return;
  for (const member of await client.zrange(key, '0', '-1'))
    await client.zincrby(key, -milliseconds, String(member));
}

async function elapse(client: Redis, prefix: string, milliseconds: number): Promise<void> {
  for (const key of await client.keys(`${prefix}:*`)) {
    if (key.includes('{rate:')) await ageStamps(client, key, milliseconds);
    if (key.includes('{budget:')) await ageSteps(client, key, milliseconds);
    if (key.includes('{share:') || isIndexOfCases(key)) await ageMembers(client, key, milliseconds);
    if (key.includes('{session:')) await client.hincrby(key, 'counted', -Math.floor(milliseconds / 1000));
    const left = await client.pttl(key);
    if (left >= 0) await client.pexpire(key, Math.max(left - milliseconds, 0));
  }
}

/** Uses the Redis of `REDIS_URL`, else starts one. */
export async function openRedisFixture(): Promise<RedisFixture> {
  const given = process.env['REDIS_URL'];
  const server = given === undefined ? await startRedis() : null;
  const url = given ?? (server as RedisServer).url;
  const client = new Redis(url);
  client.on('error', () => undefined);
  return createFixture({ url }, [client], async () => {
    client.disconnect();
    await server?.stop();
  });
}

/** Starts a cluster of three primaries. */
export async function openClusterFixture(): Promise<RedisFixture> {
  const { settings, primaries, stop } = await startRedisCluster();
  return createFixture(settings, primaries, stop);
}

/** What a user of its own may do, as docs/operations/replicas.md says it; the prefixes are those of the tests. */
const REDIS_PERMISSIONS =
  '~parley:* ~{parley}:* &parley:* -@all +@connection +@read +@write +@scripting +@pubsub +@transaction +info +time +wait +cluster|info +cluster|slots +cluster|shards +cluster|nodes';

/** Starts a Redis with TLS, which asks for a certificate and knows us as a user without other rights than it needs. */
export async function openGuardedFixture(): Promise<RedisFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-tls-'));
  const file = (name: string) => join(folder, name);
  const make = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const subject = (name: string) => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    `/CN=${name}`,
  ];
  make('req', '-x509', ...subject('authority'), '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2');
  make('req', ...subject('localhost'), '-keyout', 'redis.key', '-out', 'redis.csr');
  writeFileSync(file('names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1');
  make(
    'x509',
    '-req',
    '-in',
    'redis.csr',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-out',
    'redis.pem',
    '-days',
    '2',
    '-extfile',
    'names',
  );
  // The last port that it is given counts: it listens with TLS alone.
  const { port, child } = await launchAtFreePort((free) =>
    toArguments({
      port: 0,
      'tls-port': free,
      'tls-cert-file': file('redis.pem'),
      'tls-key-file': file('redis.key'),
      'tls-ca-cert-file': file('ca.pem'),
    }),
  );
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  const [ca, cert, key] = ['ca.pem', 'redis.pem', 'redis.key'].map((name) =>
    readFileSync(file(name), 'utf8'),
  ) as [string, string, string];
  const client = new Redis({ port, tls: { ca, cert, key } });
  client.on('error', () => undefined);
  const permissions = REDIS_PERMISSIONS.replaceAll('parley', 'parley-test-*').split(' ');
  await client.call('acl', 'setuser', 'parley', 'on', '>hunter2', ...permissions);
  const settings = { url: `rediss://parley:hunter2@localhost:${port}`, tls: { ca, cert, key } };
  return createFixture(settings, [client], async () => {
    client.disconnect();
    process.removeListener('exit', kill);
    kill();
    await waitForExit(child);
    rmSync(folder, { recursive: true, force: true });
  });
}

/** @param primaries plain clients of the servers that hold the keys */
function createFixture(
  settings: RedisSettings,
  primaries: readonly Redis[],
  stop: () => Promise<void>,
): RedisFixture {
  const states: SharedState[] = [];
  const leave = async () => {
    await Promise.all(states.splice(0).map((state) => state.close()));
  };
  const freshPrefix = () => `parley-test-${randomUUID()}`;
  return {
    settings,
    freshPrefix,
    enter: async (prefix = freshPrefix()) => {
      const state = await openRedisState({ ...settings, prefix }, SILENT);
      states.push(state);
      return state;
    },
    pass: async (prefix, milliseconds) => {
      for (const client of primaries) await elapse(client, prefix, milliseconds);
    },
    keys: async (prefix) => {
      const found = await Promise.all(
        primaries.map(async (client) => (await client.keys(`${prefix}:*`)).map((key) => ({ key, client }))),
      );
      return found.flat();
    },
    leave,
    close: async () => {
      await leave();
      await stop();
    },
  };
}
