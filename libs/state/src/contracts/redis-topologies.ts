import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisSettings } from '#core';
import { toArguments, waitForExit, freePort, launch, launchAtFreePort } from './redis-server.js';

const SLOTS = 16_384;
/** Milliseconds after which a silent node or server is taken for dead where one is to take its place. */
const NODE_TIMEOUT = 700;
/** Milliseconds for a start. Nodes that greet each other have as long for an answer, and Redis does not repeat a greeting. */
const START = 40_000;

/** Several servers of this machine that act as one Redis. */
export interface RedisTopology {
  readonly settings: RedisSettings;
  /** A plain client of each server that took writes at the start. */
  readonly primaries: readonly Redis[];
  /** A plain client of each server that holds data: the primaries, then their replicas. */
  readonly servers: readonly Redis[];
  /** Ends the process of a primary, as the machine would by losing power. @returns its address */
  kill(primary: number): Promise<string>;
  /** Whether all take a replica for the primary in its place: before that, one that comes back is a primary without data. */
  isReplaced(primary: number): Promise<boolean>;
  /** Starts a killed server again, with its address and its files. */
  revive(primary: number): Promise<void>;
  /** Keeps the connections of a primary open and answers nothing until `resume`. */
  pause(primary: number): void;
  resume(primary: number): void;
  stop(): Promise<void>;
}

/** The servers, their folders and clients, and how all of them end. */
class Servers {
  readonly children: ChildProcess[] = [];
  readonly clients: Redis[] = [];
  readonly ports: number[] = [];
  private readonly options: (readonly string[])[] = [];
  private readonly folders: string[] = [];

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'parley-redis-'));
    this.folders.push(folder);
    return folder;
  }

  keep(child: ChildProcess): ChildProcess {
    const kill = () => void child.kill('SIGKILL');
    process.once('exit', kill);
    child.once('exit', () => process.removeListener('exit', kill));
    this.children.push(child);
    return child;
  }

  async start(options: readonly string[]): Promise<number> {
    const isNode = options.includes('--cluster-enabled');
    const launched = await launchAtFreePort(async () => {
      const bus = isNode ? ['--cluster-port', String(await freePort())] : [];
      return [...options, ...bus, '--dir', this.folder()];
    });
    const { port } = launched;
    this.options.push(launched.options);
    this.keep(launched.child);
    const client = new Redis({ port, maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    this.clients.push(client);
    this.ports.push(port);
    return port;
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.disconnect();
    for (const child of this.children) child.kill('SIGKILL');
    await Promise.all(this.children.map(waitForExit));
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true });
  }

  topology(
    settings: RedisSettings,
    primaries: number,
    servers: number,
    isReplaced: RedisTopology['isReplaced'],
  ): RedisTopology {
    return {
      settings,
      isReplaced,
      primaries: this.clients.slice(0, primaries),
      servers: this.clients.slice(0, servers),
      kill: async (at) => {
        const child = this.children[at] as ChildProcess;
        child.kill('SIGKILL');
        await waitForExit(child);
        return `127.0.0.1:${this.ports[at]}`;
      },
      revive: async (at) => {
        const child = await launch(this.ports[at] as number, this.options[at] as string[]);
        this.children[at] = child;
        process.once('exit', () => void child.kill('SIGKILL'));
      },
      pause: (at) => void this.children[at]?.kill('SIGSTOP'),
      resume: (at) => void this.children[at]?.kill('SIGCONT'),
      stop: () => this.stop(),
    };
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + START; ; await pause(50)) {
    if (await holds().catch(() => false)) return;
    if (Date.now() > deadline) throw new Error(`${what} did not come about`);
  }
}

/** Three primaries, each with one replica where it is asked for. */
export async function startRedisCluster({ replicas = false } = {}): Promise<RedisTopology> {
  const servers = new Servers();
  const options = toArguments({
    'cluster-enabled': 'yes',
    'cluster-node-timeout': START,
    'cluster-replica-validity-factor': 0,
    'repl-diskless-sync-delay': 0,
  });
  try {
    const count = replicas ? 6 : 3;
    for (let at = 0; at < count; at++) await servers.start(options);
    const { clients, ports } = servers;
    const buses = await Promise.all(
      clients.map(async (client) => ((await client.config('GET', 'cluster-port')) as string[])[1] as string),
    );
    await Promise.all(
      clients.map(async (client, at) => {
        await client.cluster('SET-CONFIG-EPOCH', at + 1);
        if (at > 0) await client.call('cluster', 'meet', '127.0.0.1', String(ports[0]), buses[0] as string);
        if (at >= 3) return;
        const [from, to] = [at, at + 1].map((part) => Math.ceil((part * SLOTS) / 3)) as [number, number];
        await client.cluster('ADDSLOTS', ...Array.from({ length: to - from }, (_, slot) => from + slot));
      }),
    );
    const knows = async (client: Redis, line: string) => (await client.cluster('INFO')).includes(line);
    const all = (line: string) => async () =>
      (await Promise.all(clients.map((client) => knows(client, line)))).every(Boolean);
    await until('a cluster of all nodes', all(`cluster_known_nodes:${count}`));
    const ids = await Promise.all(clients.slice(0, 3).map((client) => client.cluster('MYID')));
    await Promise.all(clients.slice(3).map((client, at) => client.cluster('REPLICATE', ids[at] as string)));
    await until('a cluster that serves', all('cluster_state:ok'));
    if (replicas) {
      await until('a replica of each primary', async () => {
        const infos = await Promise.all(clients.slice(0, 3).map((client) => client.info('replication')));
        return infos.every((info) => info.includes('state=online'));
      });
      await Promise.all(
        clients.map((client) => client.config('SET', 'cluster-node-timeout', String(NODE_TIMEOUT))),
      );
    }
    const isReplaced = async (at: number) => (await clients[at + 3]?.role())?.[0] === 'master';
    return servers.topology({ cluster: ports.map((port) => `127.0.0.1:${port}`) }, 3, count, isReplaced);
  } catch (error) {
    await servers.stop();
    throw error;
  }
}

/** A primary with a replica, and three Sentinels that watch them. */
export async function startSentinels(): Promise<RedisTopology> {
  const servers = new Servers();
  const name = 'parley-primary';
  try {
    const primary = await servers.start([]);
    await servers.start(['--replicaof', '127.0.0.1', String(primary), '--repl-diskless-sync-delay', '0']);
    await until('a replica', async () =>
      (await (servers.clients[0] as Redis).info('replication')).includes('state=online'),
    );
    const sentinels = await Promise.all(
      Array.from({ length: 3 }, () => startSentinel(servers, name, primary)),
    );
    await until('Sentinels that know each other', async () => {
      const known = await Promise.all(
        servers.clients.slice(2).map((client) => client.call('sentinel', 'ckquorum', name)),
      );
      return known.every((answer) => String(answer).startsWith('OK 3'));
    });
    const isReplaced = async (at: number) => {
      const named = await Promise.all(
        servers.clients
          .slice(2)
          .map((client) => client.call('sentinel', 'get-master-addr-by-name', name) as Promise<string[]>),
      );
      return named.every(([, port]) => port !== String(servers.ports[at]));
    };
    return servers.topology(
      { sentinels: sentinels.map((port) => `127.0.0.1:${port}`), name },
      1,
      2,
      isReplaced,
    );
  } catch (error) {
    await servers.stop();
    throw error;
  }
}

async function startSentinel(servers: Servers, name: string, primary: number): Promise<number> {
  const port = await freePort();
  const file = join(servers.folder(), 'sentinel.conf');
  writeFileSync(
    file,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `sentinel monitor ${name} 127.0.0.1 ${primary} 2`,
      `sentinel down-after-milliseconds ${name} ${NODE_TIMEOUT}`,
      `sentinel failover-timeout ${name} 3000`,
    ].join('\n'),
  );
  servers.keep(spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' }));
  const client = new Redis({ port, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  servers.clients.push(client);
  await until('a Sentinel', async () => (await client.ping()) === 'PONG');
  return port;
}
