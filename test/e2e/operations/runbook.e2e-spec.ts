import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const WAIT = { timeout: 30_000, interval: 200 };
const KEYS = { analyst: 'key-of-analyst', chief: 'key-of-chief', next: 'another-key-of-analyst' };
const as = (key: keyof typeof KEYS) => ({ 'X-MCP-API-Key': KEYS[key] });
const text = readFileSync(new URL('../../../docs/operations/runbook.md', import.meta.url), 'utf8');

/** A command as it stands in a section of the runbook ('': before the first), with what the operator puts into it. */
function commandOf(
  section: string,
  beginning: string,
  given: Readonly<Record<string, string>> = {},
): string[] {
  const [, chapter = ''] = section === '' ? ['', text] : text.split(`\n## ${section}\n`);
  const [body = ''] = chapter.split('\n## ');
  const commands = [...body.matchAll(/npx parley ([^`\n#]+)/g)].map(([, command = '']) => command.trim());
  const found = commands.find((command) => command.startsWith(beginning));
  if (found === undefined) throw new Error(`the runbook has no command '${beginning}' in '${section}'`);
  return found.split(' ').map((word) => given[word] ?? word);
}

const folder = makeFolder('runbook');
let redis: RedisServer;
let database: Database;
let service: Service;

const free = { tenantId: 'acme', rateLimit: 1_000_000 };
const configOf = (analystKey = KEYS.analyst, policy: object = POSTS_POLICY) => ({
  redis: { url: redis.url },
  database: { uri: database.uri },
  agents: { analyst: free, chief: free },
  auth: [
    { apiKey: analystKey, agent: 'analyst', name: 'of-the-analyst' },
    { apiKey: KEYS.chief, agent: 'chief' },
  ],
  policy,
  console: { operators: ['chief'] },
  reload: { interval: 0.1 },
  audit: { sinks: [{ kind: 'file', path: join(folder, 'records.jsonl') }] },
});

beforeAll(async () => {
  [redis, database] = await Promise.all([startRedis(), startDatabase(POSTS_SEED)]);
  writeFileSync(join(folder, 'parley.yaml'), stringify(configOf()));
  service = await startService({ config: configOf() });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await Promise.all([database?.stop(), redis?.stop()]);
});

/** Follows a step: what it wrote. */
async function follow(section: string, beginning: string, given: Readonly<Record<string, string>> = {}) {
  const args = commandOf(section, beginning, { 'http://replica-1:3001': service.origin, ...given });
  const env = { PARLEY_URL: service.origin, PARLEY_API_KEY: KEYS.chief };
  const { code, stdout, stderr } = await runCommand(args, '', { cwd: folder, env });
  return { code, said: `${stdout}${stderr}` };
}
const count = (key: keyof typeof KEYS = 'analyst') =>
  callTool(service, 'count_objects', { class_name: 'Post' }, as(key));
const served = () => vi.waitFor(async () => expect((await count()).isError).toBe(false), WAIT);
const saysStatus = (line: string | RegExp) =>
  vi.waitFor(async () => {
    const { said } = await follow('', 'status');
    expect(said).toMatch(line);
  }, WAIT);

describe('the runbook, followed to the letter', { timeout: 120_000 }, () => {
  it('names a database that is away, why and which calls failed, and nothing is restarted', async () => {
    await served();
    database.pause();
    try {
      await saysStatus(/^dependencies\.mongodb: down$/m);
      expect((await count()).isError).toBe(true);
      const why = await follow('', 'doctor');
      expect([why.code, why.said]).toEqual([1, expect.stringMatching(/^fail {2}mongodb /m)]);
      expect((await follow('', 'audit search')).said).toContain('count_objects');
      const failed = await follow('ParleyCallsFail', 'audit search', { TIME: '2020-01-01' });
      expect(failed.said).toContain('count_objects');
    } finally {
      database.resume();
    }
    await saysStatus(/^ready: true$/m);
    await served();
  });

  it('ends an agent gone wild, which stays ended when Redis comes back empty, and lets another key in', async () => {
    const gone = 'An agent gone wild';
    const ended = await follow(gone, 'agents suspend', { NAME: 'analyst', TEXT: 'deletes' });
    expect([ended.code, ended.said]).toEqual([0, expect.stringContaining('analyst')]);
    const refused = {
      status: expect.anything() as unknown,
      text: expect.stringContaining('suspended') as string,
    };
    const ask = async () => {
      const answer = await fetch(service.url, {
        method: 'POST',
        headers: { ...as('analyst'), 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    expect(await ask()).toMatchObject(refused);

    await redis.stop();
    await saysStatus(/^dependencies\.redis: down$/m);
    const away = {
      code: 1,
      said: 'not possible now (503): shared state cannot be reached at the moment; parley status says what is down\n',
    };
    expect(await follow('ParleyApprovalsWait', 'approvals list')).toEqual(away);
    expect(await follow(gone, 'changes undo', { NAME: 'analyst', TIME: '2020-01-01' })).toEqual(away);
    expect(await follow(gone, 'agents resume', { NAME: 'analyst', TEXT: 'mended' })).toEqual(away);
    await redis.start();
    await saysStatus(/^ready: true$/m);
    expect(await ask()).toMatchObject(refused);
    await saysStatus(/analyst/);

    const did = await follow(gone, 'audit search', { NAME: 'analyst', TIME: '2020-01-01' });
    expect(did.said).toContain('count_objects');

    writeFileSync(join(folder, 'before.yaml'), stringify(configOf()));
    const lowered = { ...configOf(KEYS.next), agents: { analyst: { ...free, rateLimit: 600 }, chief: free } };
    writeFileSync(join(folder, 'parley.yaml'), stringify(lowered));
    const lost = await follow(gone, 'policy diff');
    expect([lost.code, lost.said]).toEqual([0, expect.any(String)]);
    service.reconfigure(lowered);
    await saysStatus(/^service\.policy\.number: 2$/m);
    const back = await follow(gone, 'agents resume', { NAME: 'analyst', TEXT: 'mended' });
    expect([back.code, back.said]).toEqual([0, expect.stringContaining('analyst')]);
    await vi.waitFor(async () => expect((await count('next')).isError).toBe(false), WAIT);
    expect((await ask()).status).toBe(401);
  });

  it('finds what is wrong with a policy that was refused, and the one before stays in force', async () => {
    const good = configOf(KEYS.next);
    const section = 'ParleyConfigurationRefused';
    service.reconfigure({ ...good, policy: { ...POSTS_POLICY, classes: { Post: { feilds: ['title'] } } } });
    await saysStatus(/last_refused.*feilds/);
    const wrong = await follow(section, 'policy check', { FILE: service.file });
    expect([wrong.code, wrong.said]).toEqual([1, expect.stringContaining('feilds')]);
    expect((await count('next')).isError).toBe(false);
    const changed = await follow('ParleyManyRefusals', 'audit search --type configuration');
    expect(changed.said).toContain('configuration');
    service.reconfigure(good);
    await saysStatus(/^service\.policy\.last_refused: null$/m);
    expect((await follow(section, 'policy check', { FILE: service.file })).code).toBe(0);
    const lowered = await follow('ParleyManyRefusals', 'audit search --type configuration');
    expect(lowered.said).toMatch(/policy \w+ as before/);
  });
});
