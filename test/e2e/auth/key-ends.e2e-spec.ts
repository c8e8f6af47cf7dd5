import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { PATIENTS_SEED } from '../../fixtures/patients.fixture.js';
import { callModern } from '../../support/modern-call.js';
import { openSession, rpc, type Service, startService } from '../../support/service.js';
import { runCommand } from '../../support/terminal.js';
import { makeFolder } from '../../support/started.js';

const folder = makeFolder('key-ends');
const LOG = join(folder, 'audit.jsonl');
/** Milliseconds that the short key holds from the start on. */
const SHORT = 20_000;

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const free = { rateLimit: 1_000_000 };
let service: Service;
let end: number;

beforeAll(async () => {
  end = Date.now() + SHORT;
  service = await startService({
    seed: PATIENTS_SEED,
    config: {
      agents: { analyst: free, operator: free },
      auth: [
        { apiKey: 'over', agent: 'analyst', name: 'analyst-2025', expires: '2025-12-31' },
        { apiKey: 'short', agent: 'analyst', name: 'analyst-short', expires: new Date(end).toISOString() },
        { apiKey: 'unused', agent: 'analyst', name: 'analyst-unused', expires: inDays(400) },
        { apiKey: 'operator', agent: 'operator' },
      ],
      console: { operators: ['operator', 'analyst'] },
      policy: { unlistedClasses: 'allow' },
      audit: { sinks: [{ kind: 'file', path: LOG }] },
    },
  });
});

const keyed = (key: string) => ({ 'X-MCP-API-Key': key });
const answerOf = async (headers: Record<string, string>) => {
  const response = await rpc(service, 'tools/list', {}, headers);
  const { date: _date, ...others } = Object.fromEntries(response.headers);
  return { status: response.status, headers: others, body: response.text };
};
const records = () =>
  readFileSync(LOG, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const status = async (path = 'status') =>
  (await (await fetch(`${service.origin}/console/api/${path}`, { headers: keyed('operator') })).json()) as {
    keys: Record<string, unknown>[];
  };
const keys = async (...options: string[]) =>
  runCommand(['keys', '--config', service.file, ...options], '', { cwd: tmpdir(), env: {} });

describe('a key with a name and an end', () => {
  it('is pointed out at the start and to operators, within 14 days of its end and after it', async () => {
    const { stderr, stdout } = service.output();
    expect(stderr + stdout).toMatch(
      /\[SECURITY\] \S+ auth: the key analyst-2025 of 'analyst' expired at 2025-12-31T00:00:00.000Z.*analyst-short/,
    );
    expect((await status()).keys.map(({ name, expired }) => [name, expired])).toEqual([
      ['analyst-2025', true],
      ['analyst-short', false],
    ]);
    const doctor = await runCommand(['doctor', '--config', service.file], '', { cwd: tmpdir(), env: {} });
    expect(doctor.stdout).toMatch(/warn {2}auth\.expires +the key analyst-2025 of 'analyst' expired/);
  });

  it('names its caller in records and in the log', async () => {
    const called = await callModern(
      service,
      'count_objects',
      { class_name: 'Patient' },
      { headers: keyed('short') },
    );
    expect(called.status).toBe(200);
    await vi.waitFor(() =>
      expect(records()).toContainEqual(
        expect.objectContaining({ type: 'tool_call', agent_name: 'analyst', key_name: 'analyst-short' }),
      ),
    );
    expect(service.output().stderr + service.output().stdout).toMatch(
      /tool=count_objects.*key=analyst-short/,
    );
  });

  it('is answered like a wrong one after its end, on every way in, and recorded with its name', async () => {
    expect(await answerOf(keyed('over'))).toEqual(await answerOf(keyed('wrong')));
    for (const path of ['/console/api/status', '/approvals']) {
      const [over, wrong] = await Promise.all(
        ['over', 'wrong'].map((key) => fetch(`${service.origin}${path}`, { headers: keyed(key) })),
      );
      expect([over?.status, await over?.text()]).toEqual([wrong?.status, await wrong?.text()]);
    }
    await vi.waitFor(() =>
      expect(records()).toContainEqual(
        expect.objectContaining({ type: 'authentication', key_name: 'analyst-2025', cause: 'expired' }),
      ),
    );
  });

  it('is listed with its last use, without the key or a digest of it', async () => {
    const listed = await keys('--json');
    expect(listed.code).toBe(0);
    const found = JSON.parse(listed.stdout) as Record<string, unknown>[];
    expect(found.map(({ name, kind, agents }) => [name, kind, agents])).toEqual([
      ['analyst-2025', 'apiKey', ['analyst']],
      ['analyst-short', 'apiKey', ['analyst']],
      ['analyst-unused', 'apiKey', ['analyst']],
      [null, 'apiKey', ['operator']],
    ]);
    expect(found.map(({ last_use }) => last_use !== null)).toEqual([false, true, false, false]);
    const table = (await keys()).stdout;
    expect(table).toMatch(/analyst-2025 .*\(expired\) +none recorded/);
    expect(table).toContain('unknown: it has no name');
    expect(Object.keys(found[0] ?? {}).sort()).toEqual(
      ['agents', 'expired', 'expires_at', 'kind', 'last_use', 'name'].sort(),
    );
  });

  it('stops admitting at its end, and the stream that was opened with it ends', async () => {
    const session = await openSession(service, keyed('short'));
    const opened = await fetch(service.url, {
      headers: { ...session, Accept: 'text/event-stream' },
    });
    const reader = opened.body?.getReader();
    expect(opened.status).toBe(200);
    expect((await answerOf(keyed('short'))).status).toBe(200);
    await pause(Math.max(0, end - Date.now()));
    expect(await answerOf(keyed('short'))).toEqual(await answerOf(keyed('wrong')));
    for (;;) {
      const piece = await reader?.read();
      if (piece?.done) break;
    }
  }, 60_000);
});
