import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { askModern } from '../../support/modern-call.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { listenFor, makeFolder } from '../../support/started.js';
import { startInTerminal } from '../../support/terminal.js';

const WAIT = { timeout: 60_000, interval: 50 };
const headers = { 'X-MCP-API-Key': 'editor' };
const SECRET = 'a-secret-of-thirty-two-characters-0123';

/** Takes connections and never says a word. */
const startSilence = () => listenFor(createServer((socket) => socket.on('error', () => undefined)));

const folder = makeFolder('shutdown');
let silence: Awaited<ReturnType<typeof startSilence>>;

/** A service with everything around it that can go away. */
interface Surroundings {
  readonly redis: RedisServer;
  readonly database: Database;
  readonly service: Service;
}

async function surrounded(): Promise<Surroundings> {
  const [redis, database] = await Promise.all([
    startRedis(),
    startDatabase({ schemas: [{ className: 'Post', fields: { title: { type: 'String' } } }] }),
  ]);
  const service = await startService({
    config: {
      agents: { editor: { permissions: 'admin', rateLimit: 1_000_000 } },
      auth: [{ apiKey: 'editor', agent: 'editor' }],
      plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
      server: { drainTimeout: 0.5 },
      traces: { endpoint: `${silence.origin}/v1/traces` },
      audit: {
        bufferFolder: join(folder, `buffer-${redis.url.split(':').at(-1)}`),
        sinks: [
          { kind: 'mongodb', onFailure: 'buffer' },
          { kind: 'webhook', url: `${silence.origin}/audit`, secret: SECRET, onFailure: 'buffer' },
        ],
      },
      policy: { unlistedClasses: 'allow' },
    },
    env: { REDIS_URL: redis.url, MONGODB_URI: database.uri, PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' },
  });
  return { redis, database, service };
}

const begun = (until: string) => vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), WAIT);

/** A call and a task that last until the service ends them. */
async function busy(service: Service): Promise<void> {
  const until = (name: string) => join(folder, `${service.pid}-${name}`);
  void callTool(service, 'slow_read', { until: until('call') }, headers).catch(() => 'broken off');
  const params = { name: 'slow_write', arguments: { until: until('task') } };
  await askModern(service, 'tools/call', params, headers);
  await Promise.all([begun(until('call')), begun(until('task'))]);
}

beforeAll(async () => {
  silence = await startSilence();
});

describe('a service that is asked to end', () => {
  it.concurrent.each([
    ['Redis is gone', ({ redis }: Surroundings) => redis.stop()],
    [
      'everything around it hangs',
      async ({ redis, database }: Surroundings) => {
        redis.pause();
        database.pause();
      },
    ],
  ])('ends by itself in the middle of a call and a task when %s', { timeout: 120_000 }, async (_, goes) => {
    const around = await surrounded();
    const { redis, database, service } = around;
    try {
      await busy(service);
      await goes(around);
      service.signal('SIGTERM');
      expect(await service.ended).toBe(0);
    } finally {
      if (service.isRunning()) await service.kill();
      redis.resume();
      database.resume();
      await Promise.all([redis.stop(), database.stop()]);
    }
  });
});

describe('a service in a terminal', () => {
  const serve = async (before: readonly string[] = []) => {
    const cwd = mkdtempSync(join(folder, 'terminal-'));
    const file = join(cwd, 'parley.yaml');
    writeFileSync(file, 'database: { uri: embedded }\nreload: { watch: false }\nlogging: { format: json }\n');
    const terminal = startInTerminal(['serve'], { cwd, env: { PORT: '0' } }, before);
    const shown = await terminal.waitFor(/listening on http:\/\/[\d.:]+\d/);
    const [, origin = ''] = /listening on (http:\/\/[\d.:]+)/.exec(shown) ?? [];
    return { terminal, file, shown, health: () => fetch(`${origin}/health`) };
  };

  it('ends when the terminal is closed, and frees its port', { timeout: 120_000 }, async () => {
    const { terminal, health } = await serve();
    expect((await health()).status).toBe(200);
    terminal.kill();
    await vi.waitFor(() => expect(health()).rejects.toThrow('fetch failed'), WAIT);
  });

  it('reads its file again upon SIGHUP, also in a session of its own', { timeout: 120_000 }, async () => {
    for (const before of [[], ['setsid', '-w']]) {
      const { terminal, file, shown, health } = await serve(before);
      const pid = Number(/"pid":(\d+)/.exec(shown)?.[1]);
      writeFileSync(file, 'nonsense: true\n');
      process.kill(pid, 'SIGHUP');
      await terminal.waitFor(/nonsense: unknown key/);
      expect((await health()).status).toBe(200);
      process.kill(pid, 'SIGTERM');
      await terminal.ended;
    }
  });
});

/** A process manager that runs `npm start` knows npm alone. */
describe('npm start', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends the service and frees its port when npm gets %s',
    { timeout: 120_000 },
    async (signal) => {
      const npm = spawn('npm', ['start'], {
        cwd: fileURLToPath(new URL('../../..', import.meta.url)),
        env: { ...process.env, PORT: '0' },
        stdio: ['ignore', 'ignore', 'pipe'],
        // What is left of a failed attempt goes with the group.
        detached: true,
      });
      try {
        let log = '';
        npm.stderr.on('data', (text: Buffer) => (log += text.toString()));
        await vi.waitFor(() => expect(log).toContain('Parley listening on'), WAIT);
        const [, origin = ''] = /listening on (http:\/\/[\d.:]+)/.exec(log) ?? [];
        expect((await fetch(`${origin}/health`)).status).toBe(200);
        const exited = new Promise((resolve) => npm.once('exit', resolve));
        npm.kill(signal);
        await exited;
        await vi.waitFor(() => expect(fetch(`${origin}/health`)).rejects.toThrow('fetch failed'), WAIT);
      } finally {
        try {
          process.kill(-(npm.pid ?? 0), 'SIGKILL');
        } catch {
          // Nothing is left of it.
        }
      }
    },
  );
});
