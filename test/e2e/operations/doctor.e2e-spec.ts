import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { type RedisServer, startRedis } from '#state/contracts';
import { type ParseServerProcess, startParseServer } from '../../support/parse-server-process.js';
import { type Database, startDatabase } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const PASSWORD = 'pass-word-of-redis';
const KEY = 'Zx81kQpL0vTn5RbWc3Yd7HgF2sAe9MuJ';

interface Report {
  readonly findings: readonly { check: string; level: string; found: string; remedy?: string }[];
  readonly config: readonly { path: string; value: unknown; origin: string }[];
  readonly counts: Record<string, number>;
}

const folder = makeFolder('doctor');
let database: Database;
let redis: RedisServer;
let parse: ParseServerProcess;
beforeAll(async () => {
  database = await startDatabase({ objects: { Post: [{ objectId: 'p1', title: 'One' }] } });
  [redis, parse] = await Promise.all([
    startRedis(['--requirepass', PASSWORD, '--maxmemory-policy', 'allkeys-lru']),
    startParseServer(database.uri, { port: 0 }),
  ]);
});
afterAll(async () => {
  await Promise.all([parse.close(), redis.stop()]);
  await database.stop();
});

function put(name: string, content: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

async function doctor(config: object, env: Record<string, string> = {}, args: string[] = ['--json']) {
  put('parley.yaml', stringify(config));
  const { code, stdout, stderr } = await runCommand(['doctor', ...args], '', { cwd: folder, env });
  return { code, text: stdout, stderr };
}

/** Level and words of every finding under a name. */
const findingsOf = ({ findings }: Report, check: string) =>
  findings.filter((one) => one.check === check).map(({ level, found }) => `${level} ${found}`);

describe('parley doctor', () => {
  it('looks at everything that is configured, fails nothing that is sound, and shows no secret', async () => {
    put('redis-password', `${PASSWORD}\n`);
    put('master-key', `${parse.masterKey}\n`);
    const { code, text, stderr } = await doctor(
      {
        server: { host: '0.0.0.0', preAuthRateLimit: { limit: 5, window: 1 } },
        redis: { url: `redis://:\${file:redis-password}@${new URL(redis.url).host}` },
        parse: { serverUrl: parse.url, appId: parse.appId, restApiKey: parse.restAPIKey },
        agents: { analyst: { tools: { only: ['count_object'] } } },
        auth: [{ apiKey: '${MCP_API_KEY}', agent: 'analyst' }],
        policy: {
          classes: { Post: { fields: ['title'], properties: { titel: { description: 'x' } } } },
        },
      },
      {
        MONGODB_URI: database.uri,
        MCP_API_KEY: KEY,
        PARSE_MASTER_KEY_FILE: join(folder, 'master-key'),
        PARSE_AGENT_ALLOW_WRITE_TOOLS: '1',
      },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const secret of [PASSWORD, KEY, parse.masterKey]) expect(text).not.toContain(secret);

    const report = JSON.parse(text) as Report;
    expect(report.findings.filter(({ level }) => level === 'fail')).toEqual([]);
    expect(findingsOf(report, 'mongodb')).toEqual([expect.stringMatching(/^ok MongoDB \d.*, replica set$/)]);
    expect(findingsOf(report, 'mongodb.change_streams')).toEqual(['ok possible']);
    expect(findingsOf(report, 'redis')).toEqual([expect.stringMatching(/^ok Redis \d/)]);
    expect(findingsOf(report, 'redis.eviction')).toEqual([
      expect.stringContaining('warn maxmemory-policy is allkeys-lru'),
    ]);
    expect(findingsOf(report, 'redis.persistence')).toEqual(['warn it keeps nothing over a restart']);
    expect(findingsOf(report, 'parse')).toEqual([expect.stringMatching(/^ok Parse Server 9\./)]);
    expect(findingsOf(report, 'parse.application')).toEqual(['ok the application id is accepted']);
    expect(findingsOf(report, 'parse.master_key')).toEqual(['ok the master key is accepted']);
    expect(findingsOf(report, 'gates')).toEqual([
      'warn open without any approval: PARSE_AGENT_ALLOW_WRITE_TOOLS',
    ]);
    expect(findingsOf(report, 'policy').join()).toContain('titel');
    expect(report.findings.every(({ level, remedy }) => level === 'ok' || remedy)).toBe(true);

    const origins = Object.fromEntries(report.config.map(({ path, origin }) => [path, origin]));
    expect(origins).toMatchObject({
      'server.host': 'file',
      'server.port': 'default',
      'database.uri': 'environment MONGODB_URI',
      'parse.masterKey': 'environment PARSE_MASTER_KEY_FILE',
      'auth.0.apiKey': 'file, from environment MCP_API_KEY',
    });
  });

  it('fails what does not answer, what refuses us and what other users may change, each with a remedy', async () => {
    // Were it run, everything would be reported as sound.
    const plugin = put('plugin.mjs', "import 'node:fs';\nprocess.exit(0);\n", 0o666);
    const { code, text } = await doctor(
      {
        redis: { url: redis.url },
        parse: { serverUrl: parse.url, appId: 'somebody-else', masterKey: 'wrong-master-key' },
        database: { uri: 'mongodb://127.0.0.1:1/x' },
        plugins: [plugin],
        auth: [{ apiKey: 'hunter2', agent: 'default' }],
      },
      {},
      [],
    );
    expect(code).toBe(1);
    const failed = text.split('\n').flatMap((line) => /^fail {2}(\S+)/.exec(line)?.[1] ?? []);
    // What there is to do is at the end, before its count.
    const levels = text.split('\n').flatMap((line) => /^(ok|warn|fail) {2}/.exec(line)?.[1] ?? []);
    const rank = (level: string) => ['ok', 'warn', 'fail'].indexOf(level);
    expect(levels).toEqual(levels.toSorted((one, other) => rank(one) - rank(other)));
    expect(text.trimEnd().split('\n').at(-1)).toMatch(/^\d+ ok, \d+ warnings?, \d+ failures?$/);
    expect(failed.sort()).toEqual(['files.writable', 'mongodb', 'parse.application', 'plugins', 'redis']);
    expect(text).toContain(`-> chmod o-w ${plugin}`);
    expect(text).toMatch(/^warn {2}plugins\.raw_access .*plugin\.mjs .*node:fs$/m);
    expect(text).toMatch(/^warn {2}auth\.weak_key/m);
    expect(text).toMatch(/^\d+ ok, \d+ warnings, 5 failures\n$/m);
    expect(text).not.toContain('wrong-master-key');
  });

  it('reports every error of a configuration that would not start, and no more', async () => {
    const config = {
      server: { host: '0.0.0.0', prot: 1 },
      auth: [{ apiKey: '${file:nowhere}', agent: 'x' }],
    };
    const faulty = await doctor(config);
    expect(faulty.code).toBe(1);
    expect(findingsOf(JSON.parse(faulty.text) as Report, 'config')).toEqual([
      expect.stringMatching(/^fail \S+:\d+:\d+ auth\.0\.apiKey: \S+nowhere cannot be read \(ENOENT\)$/),
      expect.stringMatching(/^fail \S+:\d+:\d+ server\.prot: unknown key; did you mean 'port'\?/),
      expect.stringMatching(/^fail \S+:\d+:\d+ auth\.0\.agent: no agent named 'x'; there are: default$/),
    ]);
    const open = await doctor({ server: { host: '0.0.0.0' } });
    expect(open.code).toBe(1);
    expect(findingsOf(JSON.parse(open.text) as Report, 'config')).toEqual([
      expect.stringMatching(/^fail \S+:\d+:\d+ server\.host: non-loopback address/),
    ]);
  });

  it('finds what keeps records from being written, ports that are taken, and tenants without rows', async () => {
    put('a-file', '');
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const { code, text } = await doctor({
      server: { port },
      metrics: { port: 1, host: '192.0.2.1' },
      database: { uri: database.uri },
      agents: {
        here: { tenantId: 'One' },
        nowhere: { tenantId: 'northsid' },
      },
      auth: [{ anonymous: true, agent: 'here' }],
      policy: { classes: { Post: { fields: ['title'], tenantScope: { field: 'title' } } } },
      audit: {
        sinks: [
          { kind: 'file', path: join(folder, 'a-file', 'records.jsonl') },
          { kind: 'file', path: join(folder, 'new', 'records.jsonl'), maxBytes: 2 ** 52 },
          {
            kind: 'webhook',
            url: 'http://127.0.0.1:1/secret-path',
            secret: 'x'.repeat(16),
            onFailure: 'buffer',
          },
        ],
      },
    });
    taken.close();
    expect(code).toBe(1);
    const report = JSON.parse(text) as Report;
    expect(findingsOf(report, 'audit.files')).toEqual([
      `fail audit.sinks.0.path: a part of ${join(folder, 'a-file')} is a file and no folder (ENOTDIR)`,
      'ok audit.bufferFolder: records can be written',
    ]);
    expect(findingsOf(report, 'audit.space')).toEqual([
      expect.stringMatching(
        /^warn .*new has \d+ MiB left, and audit\.sinks\.1\.path grows to 4294967296 MiB$/,
      ),
    ]);
    expect(findingsOf(report, 'audit.webhook')).toEqual(['fail 127.0.0.1:1 does not answer (ECONNREFUSED)']);
    expect(findingsOf(report, 'listening.port')).toEqual([
      `warn something listens on 127.0.0.1:${port} already`,
    ]);
    expect(findingsOf(report, 'metrics.port')).toEqual([
      'fail 192.0.2.1:1 cannot be listened on (EADDRNOTAVAIL)',
    ]);
    expect(findingsOf(report, 'agents.tenant')).toEqual([
      'warn \'nowhere\' has tenant "northsid", and no row of Post has it',
    ]);
    expect(text).not.toContain('secret-path');
    expect(existsSync(join(folder, 'new'))).toBe(false);
  });
});
