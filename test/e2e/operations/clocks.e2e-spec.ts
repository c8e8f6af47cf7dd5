import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { decideApproval } from '../../support/decide-approval.js';
import { askModern } from '../../support/modern-call.js';
import { callTool, type Database, rpc, startDatabase } from '../../support/service.js';
import { shifted, type ShiftedReplica, startShifted } from '../../support/shifted-replica.js';
import { listenFor, makeFolder } from '../../support/started.js';
import { runCommand } from '../../support/terminal.js';

const MINUTE = 60_000;
const free = { rateLimit: 1_000_000, tenantId: 'acme' };
const LIMIT = 4;
const WINDOW = 3;
const EXPIRY = 6;
const EXPORT_LIFETIME = 4;
const CLOCK_SKEW = 30;
/** Seconds; less than clocks differ, and than they jump. */
const OPEN_FOR = 120;
const AUDIENCE = 'https://parley.example/mcp';
const AGENTS = {
  analyst: free,
  editor: { ...free, permissions: 'admin' },
  proposer: { ...free, permissions: 'admin', writes: 'proposed' },
  chief: { ...free, permissions: 'admin' },
  limited: { ...free, rateLimit: LIMIT, rateWindow: WINDOW },
  person: free,
};
type AgentName = 'analyst' | 'editor' | 'proposer' | 'chief' | 'limited';
const as = (agent: AgentName, session?: string) => ({
  'X-MCP-API-Key': `key-of-${agent}-0000`,
  ...(session !== undefined && { 'Mcp-Session-Id': session }),
});

/** Seconds of clocks that jump at random, the seed of the jumps, and where `npm run proof` wants the figures. */
const { PROOF_SECONDS = '3', PROOF_SEED = String(Date.now() % 1_000_000), PROOF_FIGURES } = process.env;

/** Ten minutes apart, and one that is right. */
let behind: ShiftedReplica;
let ahead: ShiftedReplica;
let right: ShiftedReplica;
const replicas = () => [behind, ahead, right];
let redis: RedisServer;
let database: Database;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
const folder = makeFolder('clocks');
const auditOf = new Map<ShiftedReplica, string>();

async function startIssuer() {
  const { privateKey, publicKey } = await generateKeyPair('ES256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', alg: 'ES256' };
  let address = '';
  const server = createServer((request, response) => {
    const keys = { keys: [jwk] };
    response.end(
      JSON.stringify(request.url === '/keys' ? keys : { issuer: address, jwks_uri: `${address}/keys` }),
    );
  });
  const { origin, close } = await listenFor(server);
  address = origin;
  let tokens = 0;
  return {
    address,
    /** @param from seconds from now on the clock of a replica */
    token: (replica: ShiftedReplica, expires: number, from = -3_600) => {
      const now = (Date.now() + replica.ahead()) / 1000;
      return new SignJWT({ nbf: Math.round(now + from), iat: Math.round(now - 60) })
        .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'at+jwt' })
        .setIssuer(address)
        .setAudience(AUDIENCE)
        .setSubject(`person-${(tokens += 1)}`)
        .setExpirationTime(Math.round(now + expires))
        .sign(privateKey);
    },
    close,
  };
}

const configOf = (audit: string) => ({
  agents: AGENTS,
  auth: [
    ...(['analyst', 'editor', 'proposer', 'chief', 'limited'] as const).map((agent) => ({
      apiKey: `key-of-${agent}-0000`,
      agent,
    })),
    {
      agent: 'person',
      oauth: { issuer: issuer.address, audience: AUDIENCE, clockSkew: CLOCK_SKEW, revocationList: true },
    },
  ],
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write'] },
  database: { uri: database.uri, name: 'parley' },
  redis: { url: redis.url },
  approvals: { mode: 'desk', approvers: ['chief'], expiry: EXPIRY },
  console: { operators: ['chief'] },
  exports: { lifetime: EXPORT_LIFETIME },
  changes: { openFor: OPEN_FOR },
  tasks: { heartbeat: 0.3, lifetime: 600 },
  metrics: { port: 0 },
  audit: { sinks: [{ kind: 'file', path: audit }] },
  plugins: [fileURLToPath(new URL('../../fixtures/plugins/slow.mjs', import.meta.url))],
  // As many requests as the time allows: their number is not what is tried here.
  server: {
    sessions: 'strict',
    requestRateLimit: null,
    stateKey: 'a key of thirty-two characters, or more',
  },
});

beforeAll(async () => {
  [redis, database, issuer] = await Promise.all([startRedis(), startDatabase(POSTS_SEED), startIssuer()]);
  const env = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' };
  const start = async (name: string, milliseconds: number) => {
    const audit = join(folder, `${name}.jsonl`);
    const replica = await startShifted(milliseconds, { config: configOf(audit), env });
    auditOf.set(replica, audit);
    return replica;
  };
  [behind, ahead, right] = await Promise.all([
    start('behind', -5 * MINUTE),
    start('ahead', 5 * MINUTE),
    start('right', 0),
  ]);
}, 120_000);
afterAll(async () => {
  await Promise.all(replicas().map((replica) => replica?.stop()));
  await Promise.all([database?.stop(), redis?.stop(), issuer?.close()]);
});

async function openSession(replica: ShiftedReplica, agent: AgentName): Promise<string> {
  const clientInfo = { name: 'clocks', version: '1' };
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
  return (await rpc(replica, 'initialize', params, as(agent))).headers.get('mcp-session-id') ?? '';
}

let id = 0;
const modern = async (
  replica: ShiftedReplica,
  method: string,
  params: Record<string, unknown>,
  agent: AgentName,
) => (await askModern(replica, method, params, as(agent))).body['result'] as Record<string, unknown>;

interface Case {
  readonly id: string;
  readonly expires_at: string;
  readonly requested_at: string;
  readonly change_set?: string;
}
const approve = ({ origin }: ShiftedReplica, id: string) =>
  decideApproval(`${origin}/approvals/${id}`, as('chief'), { decision: 'approve' });
const approvals = async (replica: ShiftedReplica) => {
  const response = await fetch(`${replica.origin}/approvals`, { headers: as('chief') });
  return { status: response.status, body: (await response.json()) as { approvals?: Case[] } };
};
const change = async (replica: ShiftedReplica, objectId: string, title: string) => {
  const args = { class_name: 'Post', object_id: objectId, fields: { title } };
  return callTool(replica, 'update_object', args, as('editor', await openSession(replica, 'editor')));
};
const openedAt = (replica: ShiftedReplica, set?: string): Promise<Case> =>
  vi.waitFor(
    async () => {
      const { status, body } = await approvals(replica);
      const found = body.approvals?.find(({ change_set }) => change_set === set);
      if (!found) throw new Error(`no case is open yet: ${status}`);
      return found;
    },
    { timeout: EXPIRY * 1000, interval: 50 },
  );
const ofSets = async (replica: ShiftedReplica, tool: string, args: object) =>
  callTool(replica, tool, args, as('proposer', await openSession(replica, 'proposer')));
/** Proposes, submits and approves a set, each at another replica. @returns what came of it */
async function applySet(any: () => ShiftedReplica, title: string): Promise<string> {
  const proposed = await ofSets(any(), 'create_object', { class_name: 'Post', fields: { title } });
  const set = String(proposed.data['change_set']);
  const submitted = ofSets(any(), 'submit_changes', { change_set: set, title, reason: 'asked' });
  const { id: asked } = await openedAt(any(), set);
  await approve(any(), asked);
  const { isError, text } = await submitted;
  const { data: shown } = await ofSets(any(), 'show_changes', { change_set: set });
  return isError ? text : String(shown['state']);
}
const recordsOf = (replica: ShiftedReplica) =>
  readFileSync(auditOf.get(replica) as string, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown> & { seq: number; at: string });

describe('replicas whose clocks are ten minutes apart', () => {
  const pairs = () => [[behind, ahead] as const, [ahead, behind] as const];

  it('log that the clock of a machine is wrong, and which way', () => {
    expect(behind.output().stderr).toContain('is 300 s behind that of Redis');
    expect(ahead.output().stderr).toContain('is 300 s ahead of that of Redis');
    expect(right.output().stderr).not.toContain('that of Redis');
  });

  it('serve the sessions of each other', async () => {
    for (const [here, there] of pairs()) {
      const session = await openSession(here, 'analyst');
      expect((await rpc(there, 'tools/list', {}, as('analyst', session))).status).toBe(200);
      expect((await rpc(here, 'tools/list', {}, as('analyst', session))).status).toBe(200);
    }
  });

  it('decide approvals of each other, which neither end early nor are negative in the records', async () => {
    for (const [index, [here, there]] of pairs().entries()) {
      const call = change(here, `p0${index + 1}`, `Decided elsewhere ${index}`);
      const seen = await openedAt(there);
      const left = Date.parse(seen.expires_at) - (Date.now() + there.ahead());
      expect(left).toBeGreaterThan(0);
      // The difference of two clocks is known to half a round trip.
      expect(left).toBeLessThan(EXPIRY * 1000 + 200);
      expect((await approve(there, seen.id)).status).toBe(200);
      expect((await call).isError).toBe(false);
    }
  });

  it('let an approval that nobody decides end when it should', async () => {
    const began = performance.now();
    const outcomes = await Promise.all(
      pairs().map(async ([here, there], index) => {
        const call = change(here, `p1${index}`, 'Never');
        await openedAt(there);
        return call;
      }),
    );
    const seconds = (performance.now() - began) / 1000;
    for (const { isError } of outcomes) expect(isError).toBe(true);
    expect(seconds).toBeGreaterThan(EXPIRY - 0.2);
    expect(seconds).toBeLessThan(EXPIRY + 3);
  });

  it('count the calls of a principal together, and none of them makes it wait longer than its window', async () => {
    const call = async (replica: ShiftedReplica) =>
      callTool(replica, 'count_objects', { class_name: 'Post' }, as('limited', session));
    const session = await openSession(right, 'limited');
    const outcomes = [];
    for (let at = 0; at < 3 * LIMIT; at += 1) outcomes.push(await call(replicas()[at % 3] as ShiftedReplica));
    expect(outcomes.filter(({ isError }) => !isError)).toHaveLength(LIMIT);
    for (const { wire } of outcomes.filter(({ isError }) => isError)) {
      const wait = Number(/"parse\.retry_after":([\d.eE+-]+)/.exec(wire)?.[1]);
      expect(wait).toBeGreaterThan(0);
      expect(wait).toBeLessThanOrEqual(WINDOW);
    }
    await pause(WINDOW * 1000);
    for (const replica of replicas()) expect((await call(replica)).isError).toBe(false);
  });

  it('accept a token within the leeway of their own clock and no longer', async () => {
    for (const replica of replicas()) {
      const status = async (token: Promise<string>) =>
        (await rpc(replica, 'tools/list', {}, { Authorization: `Bearer ${await token}` })).status;
      expect(await status(issuer.token(replica, -CLOCK_SKEW + 10))).not.toBe(401);
      expect(await status(issuer.token(replica, -CLOCK_SKEW - 2))).toBe(401);
      expect(await status(issuer.token(replica, 3600, CLOCK_SKEW - 10))).not.toBe(401);
      expect(await status(issuer.token(replica, 3600, CLOCK_SKEW + 10))).toBe(401);
    }
  });

  it('refuse a token that was revoked on a machine whose clock is behind', async () => {
    const token = await issuer.token(right, 3600);
    const headers = { Authorization: `Bearer ${token}` };
    expect((await rpc(right, 'tools/list', {}, headers)).status).not.toBe(401);
    const { sub } = JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString()) as {
      sub: string;
    };
    writeFileSync(join(folder, 'parley.yaml'), JSON.stringify(configOf(join(folder, 'none.jsonl'))));
    const args = ['revoke', '--issuer', issuer.address, '--subject', sub];
    const revoked = await runCommand(args, '', { cwd: folder, env: shifted(-5 * MINUTE) });
    expect([revoked.code, revoked.stderr]).toEqual([0, expect.anything()]);
    for (const replica of [right, behind])
      expect((await rpc(replica, 'tools/list', {}, headers)).status).toBe(401);
  });

  it('keep the change sets of each other open, and apply them', async () => {
    for (const [here, there] of pairs()) {
      const made = await ofSets(here, 'create_object', { class_name: 'Post', fields: { title: 'Open' } });
      const { change_set } = made.data;
      for (const replica of replicas()) {
        const { data: shown } = await ofSets(replica, 'show_changes', { change_set });
        const left = Date.parse(String(shown['expires_at'])) - Date.parse(String(shown['opened_at']));
        expect([shown['state'], left]).toEqual(['open', OPEN_FOR * 1000]);
      }
      await ofSets(there, 'discard_changes', { change_set });
      let turn = 0;
      const inTurn = () => [here, there][(turn += 1) % 2] as ShiftedReplica;
      expect(await applySet(inTurn, 'Of both')).toBe('applied');
    }
  });

  it('show an operator at each of them what an agent wrote a moment ago, to take it back', async () => {
    const since = new Date(Date.now() - MINUTE).toISOString();
    let turn = 0;
    expect(await applySet(() => replicas()[(turn += 1) % 3] as ShiftedReplica, 'To be taken back')).toBe(
      'applied',
    );
    const previews = await Promise.all(
      replicas().map(async ({ origin }) => {
        const response = await fetch(`${origin}/console/api/changes/undo`, {
          method: 'POST',
          headers: { ...as('chief'), 'Content-Type': 'application/json', 'X-Parley-Console': '1' },
          body: JSON.stringify({ agent: 'proposer', since }),
        });
        return JSON.stringify(await response.json());
      }),
    );
    for (const preview of previews) expect(preview).toContain('To be taken back');
  });

  it('fetch the exports of each other until they end, and then no more', async () => {
    const ordered = await Promise.all(
      pairs().map(async ([here, there]) => {
        const session = await openSession(here, 'analyst');
        const args = { class_name: 'Post', delivery: 'resource' };
        const { data } = await callTool(here, 'export_data', args, as('analyst', session));
        const path = String(data['path']);
        return { here, there, path, fetched: () => fetch(there.origin + path, { headers: as('analyst') }) };
      }),
    );
    for (const { fetched } of ordered) expect((await fetched()).status).toBe(200);
    await pause(EXPORT_LIFETIME * 1000);
    for (const { fetched } of ordered) expect((await fetched()).status).toBe(404);
  });

  it('run and show the tasks of each other', async () => {
    for (const [here, there] of pairs()) {
      const until = join(folder, `task-${(id += 1)}`);
      const begun = await modern(here, 'tools/call', { name: 'slow_read', arguments: { until } }, 'analyst');
      const { taskId } = begun as { taskId: string };
      const seen = await modern(there, 'tasks/get', { taskId }, 'analyst');
      expect(seen).toMatchObject({ status: 'working', createdAt: begun['createdAt'] });
      expect(Math.abs(Date.parse(String(seen['createdAt'])) - Date.now())).toBeLessThan(MINUTE);
      writeFileSync(until, '');
      await expect
        .poll(() => modern(there, 'tasks/get', { taskId }, 'analyst'), { timeout: 20_000 })
        .toMatchObject({ status: 'completed' });
    }
  });

  it('accept operators who signed in at each other, until they sign out', async () => {
    for (const [here, there] of pairs()) {
      // A session belongs to the name under which it was opened.
      const Host = new URL(here.origin).host;
      const ask = (replica: ShiftedReplica, method: string, path: string, Cookie?: string) =>
        new Promise<IncomingMessage>((resolve, reject) => {
          const { hostname, port } = new URL(replica.origin);
          const headers = {
            'X-Parley-Console': '1',
            'Content-Type': 'application/json',
            Host,
            ...(Cookie !== undefined && { Cookie }),
          };
          request({ hostname, port, method, path: `/console/${path}`, headers }, (response) => {
            response.resume().once('end', () => resolve(response));
          })
            .once('error', reject)
            .end(method === 'POST' ? JSON.stringify({ key: 'key-of-chief-0000' }) : undefined);
        });
      const [cookie = ''] = (await ask(here, 'POST', 'session')).headers['set-cookie'] ?? [];
      expect(cookie).toMatch(/Max-Age=(1799|1800)/);
      const value = cookie.split(';')[0];
      expect((await ask(there, 'GET', 'api/status', value)).statusCode).toBe(200);
      expect((await ask(there, 'DELETE', 'session', value)).statusCode).toBeLessThan(300);
      expect((await ask(here, 'GET', 'api/status', value)).statusCode).toBe(401);
    }
  });
});

describe('a replica whose clock is set back by an hour', () => {
  it('keeps sessions, limits, approvals, change sets and running tasks', async () => {
    const session = await openSession(right, 'limited');
    const count = () => callTool(right, 'count_objects', { class_name: 'Post' }, as('limited', session));
    for (let at = 0; at < LIMIT; at += 1) await count();
    const until = join(folder, `task-${(id += 1)}`);
    const beginning = modern(right, 'tools/call', { name: 'slow_write', arguments: { until } }, 'editor');
    const seen = await openedAt(behind);
    expect((await approve(behind, seen.id)).status).toBe(200);
    const begun = await beginning;
    await vi.waitFor(() => expect(existsSync(`${until}.begun`)).toBe(true), 20_000);
    const proposed = await ofSets(right, 'create_object', { class_name: 'Post', fields: { title: 'Set' } });
    const call = change(right, 'p03', 'Asked before');
    const asked = await openedAt(ahead);

    const began = performance.now();
    await right.setClock(-60 * MINUTE);
    expect((await count()).code).toBe('rate_limited');
    expect((await approve(ahead, asked.id)).status).toBe(200);
    expect((await call).isError).toBe(false);
    await expect.poll(async () => (await count()).isError, { timeout: 20_000, interval: 100 }).toBe(false);
    const { change_set } = proposed.data;
    const { data: shown } = await ofSets(right, 'discard_changes', { change_set });
    expect(shown['state']).toBe('discarded');
    // Longer than the lock of a run is held without being renewed.
    await pause(Math.max(0, 2_500 - (performance.now() - began)));
    writeFileSync(until, '');
    const { taskId } = begun as { taskId: string };
    await expect
      .poll(() => modern(ahead, 'tasks/get', { taskId }, 'editor'), { timeout: 20_000 })
      .toMatchObject({ status: 'completed', result: { isError: false } });
    expect((await rpc(right, 'tools/list', {}, as('limited', session))).status).toBe(200);
  });

  it('records in order of its sequence with the times as they were, and never a negative duration', async () => {
    const records = recordsOf(right);
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => (records[0]?.seq ?? 0) + index));
    const times = records.map(({ at }) => Date.parse(at));
    expect(times.some((time, index) => index > 0 && time < (times[index - 1] as number) - 50 * MINUTE)).toBe(
      true,
    );
    for (const replica of replicas())
      for (const [name, value] of recordsOf(replica).flatMap((record) => Object.entries(record)))
        if (name.endsWith('_ms')) expect([name, (value as number) >= 0]).toEqual([name, true]);
    const files = [...auditOf.values()];
    const verified = await runCommand(['audit', 'verify', ...files], '', { cwd: folder });
    expect([verified.code, verified.stdout + verified.stderr]).toEqual([0, expect.stringContaining('chain')]);
  });

  it('has no negative metric', async () => {
    for (const replica of replicas()) {
      const url = /Metrics on (http:\S+\/metrics)/.exec(replica.output().stderr)?.[1] ?? '';
      const text = await (await fetch(url)).text();
      const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      expect(samples.length).toBeGreaterThan(50);
      expect(samples.filter((line) => Number(line.split(' ').at(-1)) < 0)).toEqual([]);
    }
  });
});

describe('replicas whose clocks jump at random', () => {
  it(
    `lose nothing in ${PROOF_SECONDS} seconds (PROOF_SEED=${PROOF_SEED})`,
    async () => {
      const duration = Number(PROOF_SECONDS) * 1000;
      const began = performance.now();
      const goesOn = () => performance.now() - began < duration;
      let state = Number(PROOF_SEED) || 1;
      const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
      const any = () => replicas()[Math.floor(random() * 3)] as ShiftedReplica;
      const losses: string[] = [];
      const counts = { jumps: 0, calls: 0, approvals: 0, sets: 0, tasks: 0, permitted: 0 };
      /** Milliseconds of the slowest way back of a principal to its next permitted call. */
      let longestWait = 0;

      const jumps = async () => {
        while (goesOn()) {
          const replica = any();
          await replica.setClock(Math.round((random() - 0.5) * 10 * MINUTE));
          counts.jumps += 1;
          await pause(200 + random() * 400);
        }
      };
      const sessions = async () => {
        const session = await openSession(any(), 'analyst');
        while (goesOn()) {
          const { status } = await rpc(any(), 'tools/list', {}, as('analyst', session));
          if (status !== 200) losses.push(`a session was answered with ${status}`);
          counts.calls += 1;
          await pause(50);
        }
      };
      const limits = async () => {
        const session = await openSession(any(), 'limited');
        const permitted: number[] = [];
        let refusedSince: number | null = null;
        while (goesOn()) {
          const asked = performance.now();
          const answer = await callTool(
            any(),
            'count_objects',
            { class_name: 'Post' },
            as('limited', session),
          );
          if (answer.isError) {
            const wait = Number(/"parse\.retry_after":([\d.eE+-]+)/.exec(answer.wire)?.[1]);
            if (!(wait > 0 && wait <= WINDOW)) losses.push(`a refused call was told to wait ${wait} s`);
            refusedSince ??= asked;
            longestWait = Math.max(longestWait, performance.now() - refusedSince);
          } else {
            refusedSince = null;
            permitted.push(asked);
            const before = permitted.at(-1 - LIMIT);
            // Counted after it was asked for, and before it was answered.
            if (before !== undefined && performance.now() - before < WINDOW * 1000)
              losses.push('more calls were permitted than the limit');
            counts.permitted += 1;
          }
          await pause(50);
        }
        if (longestWait > (WINDOW + 1) * 1000) losses.push(`a principal was blocked for ${longestWait} ms`);
      };
      const decisions = async () => {
        while (goesOn()) {
          const title = `Change ${(counts.approvals += 1)}`;
          const call = change(any(), 'p05', title);
          const { id: asked } = await openedAt(any());
          const decided = await approve(any(), asked);
          const outcome = await call;
          if (decided.status !== 200 || outcome.isError)
            losses.push(`an approved change ended with ${decided.status}, ${outcome.text}`);
        }
      };
      const sets = async () => {
        while (goesOn()) {
          const outcome = await applySet(any, `Set ${(counts.sets += 1)}`);
          if (outcome !== 'applied') losses.push(`an approved change set ended as ${outcome}`);
        }
      };
      const tasks = async () => {
        while (goesOn()) {
          const until = join(folder, `task-${(id += 1)}`);
          const begun = await modern(
            any(),
            'tools/call',
            { name: 'slow_read', arguments: { until } },
            'analyst',
          );
          const taskId = begun['taskId'];
          counts.tasks += 1;
          // Longer than the lock of a run is held without being renewed.
          await pause(900);
          writeFileSync(until, '');
          const ended = await vi
            .waitFor(async () => {
              const seen = await modern(any(), 'tasks/get', { taskId }, 'analyst');
              if (seen['status'] === 'working') throw new Error('working');
              return seen['status'];
            }, 10_000)
            .catch(() => 'lost');
          if (ended !== 'completed') losses.push(`a task ended as ${String(ended)}`);
        }
      };
      await Promise.all([jumps(), sessions(), limits(), decisions(), sets(), tasks()]);

      for (const replica of replicas())
        for (const [name, value] of recordsOf(replica).flatMap((record) => Object.entries(record)))
          if (name.endsWith('_ms') && !((value as number) >= 0)) losses.push(`${name} is ${String(value)}`);
      const verified = await runCommand(['audit', 'verify', ...auditOf.values()], '', { cwd: folder });
      if (verified.code !== 0) losses.push(`the audit chain is not whole: ${verified.stdout}`);
      if (PROOF_FIGURES !== undefined)
        writeFileSync(PROOF_FIGURES, JSON.stringify({ losses, counts, longestWait }));
      expect(losses).toEqual([]);
      expect(Math.min(...Object.values(counts))).toBeGreaterThan(0);
    },
    Number(PROOF_SECONDS) * 1000 + 60_000,
  );
});
