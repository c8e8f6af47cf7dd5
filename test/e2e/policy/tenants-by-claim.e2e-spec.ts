import { beforeAll, describe, expect, it, vi } from 'vitest';
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

/* No agent has a `tenantId`: the tenant of every caller is a claim of its token, by the scopes of the classes alone. */

const AUDIENCE = 'https://parley.example/mcp';
const text = { type: 'String' };
const everyone = { '*': true };
const open = { find: everyone, get: everyone, count: everyone, create: everyone, update: everyone };
const person = (objectId: string, org: string) => ({
  objectId,
  org,
  name: `Name of ${objectId}`,
  email: 'same@example.com',
});
const SEED = {
  schemas: [
    {
      className: 'Plan',
      fields: { title: text, org: text },
      classLevelPermissions: { ...open, delete: everyone },
    },
    { className: 'Person', fields: { name: text, email: text, org: text }, classLevelPermissions: open },
    { className: 'Notice', fields: { title: text, region: text }, classLevelPermissions: open },
  ],
  objects: { Person: [person('ann', 'acme'), person('bob', 'acme'), person('carl', 'globex')] },
};

const free = { rateLimit: 1_000_000 };
const scope = (bypass?: readonly string[]) => ({
  tenantScope: { field: 'org', from: { claim: 'org' }, ...(bypass && { bypass }) },
});
const BUDGET = 40;
const config = () => ({
  server: { stateKey: 'a key of thirty-two characters, or more' },
  agents: {
    writer: { ...free, permissions: 'write' },
    proposer: { ...free, permissions: 'write', writes: 'proposed' },
    reader: free,
    eastern: { ...free, filters: { Notice: { region: 'east' } } },
    chief: { ...free, permissions: 'admin' },
    operator: { ...free, permissions: 'admin' },
    clerk: free,
  },
  auth: [
    {
      agent: 'reader',
      oauth: {
        issuer: issuer.issuer,
        audience: AUDIENCE,
        scopes: { write: 'writer', propose: 'proposer', east: 'eastern' },
      },
    },
    ...['chief', 'operator', 'clerk'].map((agent) => ({ apiKey: `key-of-${agent}-0000`, agent })),
  ],
  approvals: { mode: 'desk', approvers: ['reader', 'eastern', 'chief', 'clerk'], expiry: 60 },
  console: { operators: ['operator', 'clerk'] },
  changes: { record: 'all' },
  database: { uri: database.uri, name: 'parley' },
  policy: {
    maskingKey: 'a key of thirty-two characters, or more',
    tenantBudget: { rows: BUDGET },
    requireApprovalFor: ['write'],
    classes: {
      Plan: scope(['admin']),
      Person: { ...scope(), fields: ['name', 'email'], masks: { email: 'hash' } },
      Notice: {},
    },
  },
});

type Headers = Record<string, string>;
interface Case {
  readonly id: string;
  readonly class_name?: string;
  readonly tool: string;
}
interface Shown {
  readonly digest?: string;
  readonly preview: Record<string, unknown>;
}

let issuer: TokenIssuer;
let database: Database;
let service: Service;
beforeAll(async () => {
  [issuer, database] = await Promise.all([startTokenIssuer(), startDatabase(SEED)]);
  service = await startService({
    config: config(),
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 120_000);

const signIn = (sub: string, org: string | null, scopes = 'read') =>
  issuer.signIn({ sub, scope: scopes, ...(org !== null && { org }) }, AUDIENCE);
const keyed = (agent: string): Headers => ({ 'X-MCP-API-Key': `key-of-${agent}-0000` });

async function ask<T>(path: string, headers: Headers, body?: object): Promise<{ status: number; body: T }> {
  const response = await fetch(`${service.origin}${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json', 'X-Parley-Console': '1' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}
const list = async (headers: Headers) =>
  (await ask<{ approvals: Case[] }>('/approvals', headers)).body.approvals;
const show = (id: string, headers: Headers) => ask<Shown>(`/approvals/${id}`, headers);
const decide = async (id: string, headers: Headers, decision = 'approve') => {
  const { body } = await show(id, headers);
  return ask<object>(`/approvals/${id}`, headers, { decision, digest: body.digest ?? 'none was shown' });
};
const findCase = (headers: Headers, tool: string, className?: string) =>
  vi.waitUntil(
    async () => (await list(headers)).find((one) => one.tool === tool && one.class_name === className)?.id,
    { timeout: 15_000, interval: 100 },
  ) as Promise<string>;

describe('of callers whose tenant is a claim', { timeout: 60_000 }, () => {
  it('a new row is shown to, and approved by, nobody of another tenant, of none, or without a bypass', async () => {
    const fields = { title: 'plans of acme' };
    const writing = callTool(
      service,
      'create_object',
      { class_name: 'Plan', fields },
      await signIn('alice', 'acme', 'write'),
    );
    const colleague = await signIn('carol', 'acme');
    const id = await findCase(colleague, 'create_object', 'Plan');
    const strangers = [await signIn('bert', 'globex'), await signIn('nobody', null), keyed('clerk')];
    for (const stranger of strangers) {
      expect(await list(stranger)).toEqual([]);
      expect((await show(id, stranger)).status).toBe(404);
      expect((await decide(id, stranger)).status).toBe(404);
    }
    expect(JSON.stringify((await show(id, keyed('chief'))).body)).toContain('plans of acme');
    expect(JSON.stringify((await show(id, colleague)).body)).toContain('plans of acme');
    expect((await decide(id, colleague)).status).toBe(200);
    expect((await writing).isError).toBe(false);
  });

  it('a change set is shown to, and approved or taken back by, nobody of another tenant', async () => {
    const proposer = await signIn('alice', 'acme', 'propose');
    const proposed = await callTool(
      service,
      'create_object',
      { class_name: 'Plan', fields: { title: 'set of acme' } },
      proposer,
    );
    const submitting = callTool(service, 'submit_changes', { title: 'a set', reason: 'why' }, proposer);
    const colleague = await signIn('carol', 'acme');
    const id = await findCase(colleague, 'submit_changes');
    const stranger = await signIn('bert', 'globex');
    expect(await list(stranger)).toEqual([]);
    expect((await decide(id, stranger)).status).toBe(404);
    // Whose tier bypasses the scope of its classes is asked, whatever other classes there are.
    expect(JSON.stringify((await show(id, keyed('chief'))).body)).toContain('set of acme');
    expect((await decide(id, colleague)).status).toBe(200);
    expect((await submitting).isError).toBe(false);
    const set = String(proposed.data['change_set']);
    // An operator without the tenant learns of no set; one whose tier bypasses the scope does.
    const at = '/console/api/changes';
    expect(JSON.stringify((await ask(at, keyed('clerk'))).body)).not.toContain(set);
    expect((await ask(`${at}/${set}`, keyed('clerk'))).status).not.toBe(200);
    expect(JSON.stringify((await ask(at, keyed('operator'))).body)).toContain(set);
    expect(JSON.stringify((await ask(`${at}/${set}`, keyed('operator'))).body)).toContain('set of acme');
  });

  it('one person with tokens of two tenants finds with one nothing of the other', async () => {
    const [here, there] = [
      await signIn('dora', 'acme', 'propose'),
      await signIn('dora', 'globex', 'propose'),
    ];
    const key = { idempotency_key: 'the-same-key' };
    const write = (title: string, headers: Headers) =>
      callTool(service, 'create_object', { class_name: 'Plan', fields: { title }, ...key }, headers);
    const first = await write('of acme', here);
    const second = await write('of globex', there);
    expect(second.isError).toBe(false);
    expect(second.data['change_set']).not.toBe(first.data['change_set']);
    expect(JSON.stringify(second.data)).not.toContain('of acme');
  });

  it('pseudonyms of one value are equal within a tenant, and differ between two', async () => {
    const emails = async (org: string) => {
      const headers = await signIn('alice', org);
      const { data } = await callTool(
        service,
        'query_class',
        { class_name: 'Person', keys: ['email'] },
        headers,
      );
      return (data['results'] as { email: string }[]).map(({ email }) => email);
    };
    const [acme, globex] = [await emails('acme'), await emails('globex')];
    expect(acme).toHaveLength(2);
    expect(new Set(acme).size).toBe(1);
    expect(new Set([...acme, ...globex]).size).toBe(2);
  });

  it('all callers of a tenant use up its budget, and no other tenant notices', async () => {
    const read = async (sub: string, org: string) =>
      (await callTool(service, 'query_class', { class_name: 'Person' }, await signIn(sub, org))).code;
    let code: string | undefined;
    for (let calls = 0; calls < BUDGET && code === undefined; calls += 1)
      code = await read(`person-${calls % 3}`, 'acme');
    expect(code).toBe('rate_limited');
    expect(await read('somebody-else', 'acme')).toBe('rate_limited');
    expect(await read('bert', 'globex')).toBeUndefined();
  });
});

describe('a new row outside the row filters of an approver', { timeout: 60_000 }, () => {
  it('is neither shown to it nor approved by it; one within them is', async () => {
    const writer = await signIn('alice', 'initech', 'write');
    const eastern = await signIn('ellen', 'initech', 'east');
    for (const region of ['west', 'east']) {
      const fields = { title: `only for the ${region}`, region };
      const writing = callTool(service, 'create_object', { class_name: 'Notice', fields }, writer);
      const id = await findCase(eastern, 'create_object', 'Notice');
      const shown = JSON.stringify((await show(id, eastern)).body);
      const isOwn = region === 'east';
      expect(shown.includes('only for')).toBe(isOwn);
      expect((await decide(id, eastern)).status).toBe(isOwn ? 200 : 403);
      if (!isOwn) await decide(id, await signIn('rita', 'initech'));
      expect((await writing).isError).toBe(false);
    }
  });
});
