import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_CONFIG, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const CLI = join(root, 'dist/bundle/cli.js');
const SOON = { timeout: 30_000, interval: 50 };
const KEYS = { old: 'o'.repeat(40), new: 'n'.repeat(40) };

const textOf = (page: string) => readFileSync(join(root, 'docs/operations', page), 'utf8');

/** The commands of a page below a heading, each as it stands there, without what a comment says. */
function commandsOf(page: string, heading: string): string[] {
  const after = textOf(page).split(`\n## ${heading}\n`)[1];
  if (after === undefined) throw new Error(`${page} has no chapter ${heading}`);
  const blocks = [...(after.split(/^## /m)[0] ?? '').matchAll(/^ *```bash\n(.*?)^ *```/gms)];
  return blocks.flatMap(([, text = '']) => text.trim().split('\n')).map((line) => line.trim());
}

interface Ran {
  readonly command: string;
  readonly code: number | null;
  readonly said: string;
}

let folder: string;
let database: Database;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
});
beforeEach(() => {
  folder = makeFolder('upkeep');
});

/** Runs a command of a page in the folder of the operator. `npx parley` is the product of this repository. */
function run(command: string, env: Record<string, string> = {}): Promise<Ran> {
  const { PATH = '', HOME = '' } = process.env;
  const product = `npx() { shift; '${process.execPath}' '${CLI}' "$@"; }`;
  const child = spawn('bash', ['-c', `set -eo pipefail\n${product}\n${command}`], {
    cwd: folder,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  return new Promise((resolve) => child.once('close', (code) => resolve({ command, code, said })));
}

/** Runs commands in turn. @throws for the first that does not end as it should */
async function runAll(commands: readonly string[], env: Record<string, string> = {}): Promise<Ran[]> {
  const ran: Ran[] = [];
  for (const command of commands) {
    const one = await run(command, env);
    expect(one).toEqual({ ...one, code: 0 });
    ran.push(one);
  }
  return ran;
}

const file = (path: string) => ({ kind: 'file', path: join(folder, path), fsync: 'always' });

const configOf = (audit: object, more: object = {}) => ({
  ...POSTS_CONFIG,
  ...more,
  database: { uri: database.uri, name: 'parley' },
  audit: { bufferFolder: join(folder, 'parley-audit-buffer'), ...audit },
});

/** How many records a verification found, all of which hold. */
const heldBy = (ran: Ran | undefined) => Number(/^(\d+) records hold$/m.exec(ran?.said ?? '')?.[1]);

/** The configuration of a service, where the commands find it as well. */
async function startOperated(config: object, name = 'parley.yaml'): Promise<Service> {
  writeFileSync(join(folder, name), stringify(config));
  return startService({ config: config as Record<string, unknown> });
}

const count = (service: Service, headers: Record<string, string> = {}) =>
  callTool(service, 'count_objects', { class_name: 'Post' }, headers);

/** A service that serves one call and ends. */
async function serveOnce(config: object, name?: string): Promise<void> {
  const service = await startOperated(config, name);
  expect((await count(service)).isError).toBe(false);
  await service.stop();
}

describe('the page on rotating keys', () => {
  it('keeps the records before and after a new chainKey valid, each with its key', async () => {
    const [before = '', move = '', archived = '', after = ''] = commandsOf('keys.md', '`audit.chainKey`');
    const withKey = (chainKey: string) => configOf({ chainKey, sinks: [file('audit/records.jsonl')] });
    await serveOnce(withKey(KEYS.old));
    const [first] = await runAll([before, move]);
    writeFileSync(join(folder, 'old.yaml'), stringify(withKey(KEYS.old)));
    await serveOnce(withKey(KEYS.new));
    const [, last] = await runAll([archived, after]);
    expect(heldBy(last)).toBe(heldBy(first));
    // Both in one file, as without the move: no key fits all of it.
    await run('cat archive/records.jsonl audit/records.jsonl > both.jsonl');
    for (const config of ['old.yaml', 'parley.yaml'])
      expect((await run(`npx parley audit verify both.jsonl --config ${config}`)).said).toContain(
        'OTHER_KEY',
      );
  });

  it('lets an agent have two API keys, until one is taken away', async () => {
    const [generate = ''] = commandsOf('keys.md', 'API keys');
    const made = await Promise.all([run(generate), run(generate)]);
    const pairs = made.map(({ said }) => ({
      key: /^key: +(\S+)$/m.exec(said)?.[1] ?? '',
      apiKeyHash: /^hash: +(\S+)$/m.exec(said)?.[1] ?? '',
    }));
    const withKeys = (some: typeof pairs) => ({
      ...configOf({}),
      reload: { interval: 0.1 },
      auth: some.map(({ apiKeyHash }) => ({ apiKeyHash, agent: 'analyst' })),
    });
    const service = await startOperated(withKeys(pairs.slice(0, 1)));
    const accepted = () =>
      Promise.all(
        pairs.map(
          async ({ key }) =>
            typeof (await count(service, { 'X-MCP-API-Key': key })).data['count'] === 'number',
        ),
      );
    expect(await accepted()).toEqual([true, false]);
    service.reconfigure(withKeys(pairs));
    await vi.waitFor(async () => expect(await accepted()).toEqual([true, true]), SOON);
    service.reconfigure(withKeys(pairs.slice(1)));
    await vi.waitFor(async () => expect(await accepted()).toEqual([false, true]), SOON);
    await service.stop();
  });

  it('changes every pseudonym with a maskingKey, without a restart', async () => {
    const withKey = (maskingKey: string) => ({
      ...configOf({}),
      reload: { interval: 0.1 },
      policy: {
        ...POSTS_CONFIG.policy,
        maskingKey,
        classes: { ...POSTS_CONFIG.policy.classes, _User: { masks: { username: 'hash' } } },
      },
    });
    const service = await startOperated(withKey(KEYS.old));
    const pseudonym = async () => {
      const { data } = await callTool(service, 'query_class', { class_name: '_User', limit: 1 });
      return (data['results'] as { username: string }[])[0]?.username;
    };
    const first = await pseudonym();
    expect(first).toMatch(/^h_/);
    service.reconfigure(withKey(KEYS.new));
    await vi.waitFor(async () => expect(await pseudonym()).not.toBe(first), SOON);
    await service.stop();
  });
});

describe('the page on backups', () => {
  it('puts a file of records aside while the service runs, and every record stays valid', async () => {
    const [putAside = '', verify = '', verifyCopy = ''] = commandsOf('backup.md', 'Audit records');
    const service = await startOperated(configOf({ sinks: [file('audit/records.jsonl')] }));
    await count(service);
    const [before] = await runAll([verify]);
    await run(putAside);
    await count(service);
    expect(
      readdirSync(join(folder, 'audit')).filter((name) => /^records\.jsonl(\.\d|$)/.test(name)),
    ).toHaveLength(2);
    const [after] = await runAll([verify]);
    expect(heldBy(after)).toBe(heldBy(before) + 1);
    mkdirSync(join(folder, 'restored'));
    await run('cp audit/records.jsonl restored/');
    await runAll([verifyCopy]);
    await service.stop();
  });

  describe('with Redis', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    it('empties a prefix and nothing else, so that another database can be served under it', async () => {
      const redisUrl = { REDIS_URL: redis.url };
      const clear = commandsOf('backup.md', 'Restoring the database');
      const config = configOf({}, { redis: { url: redis.url } });
      const moved = { ...config, database: { uri: database.uri, name: 'restored' } };
      const first = await startOperated(config);
      await count(first);
      await first.stop();
      await expect(startOperated(moved)).rejects.toThrow('redis.prefix');
      await run('redis-cli -u "$REDIS_URL" set others:key 1', redisUrl);
      await runAll(clear, redisUrl);
      expect((await run('redis-cli -u "$REDIS_URL" --scan', redisUrl)).said.trim()).toBe('others:key');
      const second = await startOperated(moved);
      expect(await second.stop()).toBe(0);
    });
  });
});

describe('the page on moving audit sinks', () => {
  it('moves a file to another path without a break', async () => {
    const [move = '', verify = '', both = ''] = commandsOf('audit-sinks.md', 'A file to another path');
    await serveOnce(configOf({ sinks: [file('audit/records.jsonl')] }));
    await runAll([move]);
    await serveOnce(configOf({ sinks: [file('records/records.jsonl')] }));
    const [moved] = await runAll([verify]);
    // Or the old file stays.
    await run('cp records/records.jsonl audit/ && rm records/*');
    await serveOnce(configOf({ sinks: [file('records/records.jsonl')] }));
    const [together] = await runAll([both]);
    expect(heldBy(together)).toBe((heldBy(moved) / 2) * 3);
  });

  it('moves records to MongoDB beside the file, and both agree', async () => {
    const [verify = ''] = commandsOf('audit-sinks.md', 'A file to MongoDB, or to a webhook');
    await serveOnce(configOf({ sinks: [file('audit/records.jsonl')] }));
    const collection = { kind: 'mongodb', uri: database.uri, collection: 'moved' };
    await serveOnce(configOf({ sinks: [file('audit/records.jsonl'), collection] }));
    const [both] = await runAll([verify]);
    expect(heldBy(both)).toBeGreaterThan(0);
  });

  it('leaves what waits for a place that is gone in its buffer, where it can be verified', async () => {
    const [verify = ''] = commandsOf('audit-sinks.md', 'Before every move');
    const gone = {
      kind: 'mongodb',
      uri: 'mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=300',
      onFailure: 'buffer',
    };
    await serveOnce(configOf({ sinks: [gone] }));
    const waiting = () =>
      readdirSync(join(folder, 'parley-audit-buffer')).filter((name) => name.endsWith('.jsonl'));
    expect(waiting()).toHaveLength(1);
    const [buffered] = await runAll([verify]);
    // Another place: what waited is not delivered there.
    await serveOnce(configOf({ sinks: [{ ...file('audit/records.jsonl'), onFailure: 'buffer' }] }));
    const [delivered, still] = await runAll(['npx parley audit verify', verify]);
    expect([heldBy(delivered), heldBy(still)]).toEqual([heldBy(buffered), heldBy(buffered)]);
  });
});

describe('the page on upgrades', () => {
  it('begins with commands that a good configuration passes', async () => {
    const { unlistedClasses: _, ...policy } = POSTS_CONFIG.policy;
    writeFileSync(join(folder, 'parley.yaml'), stringify(configOf({}, { policy })));
    writeFileSync(
      join(folder, 'cases.yaml'),
      stringify([
        {
          agent: 'analyst',
          tool: 'count_objects',
          arguments: { class_name: 'Post' },
          expect: { allowed: true },
          injected: { orgId: 'acme' },
        },
      ]),
    );
    const ran = [];
    for (const command of commandsOf('upgrade.md', 'Before')) ran.push(await run(command));
    expect(ran.map(({ command, code }) => [command.split('#')[0]?.trim(), code])).toEqual([
      ['npx parley --version', 0],
      ['npx parley doctor', 0],
      ['npx parley policy check', 0],
      ['npx parley policy test cases.yaml', 0],
    ]);
  });

  it('end and name an option that the version does not know', async () => {
    writeFileSync(join(folder, 'parley.yaml'), stringify({ ...configOf({}), laterOption: true }));
    const { code, said } = await run('npx parley policy check');
    expect([code, said]).toEqual([1, expect.stringContaining('laterOption')]);
  });
});

describe('the pages on upkeep', () => {
  it('name only commands and options that exist', async () => {
    const pages = ['upgrade.md', 'backup.md', 'keys.md', 'audit-sinks.md', 'runbook.md'];
    const named = pages.flatMap((page) => [
      ...textOf(page).matchAll(
        /`parley ((?:audit|policy|approvals|agents|changes) \w+|[a-z-]+)|npx parley ((?:audit|policy|approvals|agents|changes) \w+|[a-z-]+)(.*)/g,
      ),
    ]);
    const options = new Map<string, Set<string>>();
    for (const [, mentioned, run = '', rest = ''] of named) {
      const command = mentioned ?? run;
      const known = options.get(command) ?? new Set();
      for (const [option] of rest.replace(/#.*/, '').matchAll(/--[a-z-]+/g)) known.add(option);
      options.set(command, known);
    }
    options.delete('--version');
    expect(options.size).toBeGreaterThan(8);
    for (const [command, used] of options) {
      const { said } = await run(`npx parley ${command} --help`);
      expect(said).toContain(`Usage: parley ${command}`);
      for (const option of used) expect([command, said]).toEqual([command, expect.stringContaining(option)]);
    }
  });
});
