import { MongoClient, ObjectId } from 'mongodb';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { askModern } from '../../support/modern-call.js';
import {
  callTool,
  type Database,
  rpc,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';
import { makeFolder } from '../../support/started.js';
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.js';

/* Each tenant has a database of its own, and every caller gets its tenant from a token of one issuer. */

const AUDIENCE = 'https://parley.example/mcp';
const SOON = { timeout: 30_000, interval: 50 };
const free = { rateLimit: 1_000_000, tenantId: { claim: 'org' } };
const shared = new ObjectId();
const folder = makeFolder('tenants');

/** Databases that exist, and that no tenant may have. */
const TAKEN = ['admin', 'local', 'config', 'parley', 'parley_audit', 'fixed'];
const HOSTILE: readonly unknown[] = [
  ...TAKEN,
  ...TAKEN.map((name) => name.toUpperCase()),
  '..',
  '../acme',
  'acme/../globex',
  'acme.invoices',
  'acme.$cmd',
  '$acme',
  '$&',
  "$`acme$'",
  '{tenant}',
  'Acme',
  'ACME',
  'acmé',
  'acme\u0301',
  'ａcme',
  '\u212Aelvin',
  'ac\u200Bme',
  'acme\u0000',
  'acme\n',
  ' acme',
  'acme ',
  '"acme"',
  'acme\\globex',
  'a'.repeat(64),
  'a'.repeat(5_000),
  -1,
  1.5,
  1e21,
  0.1,
  true,
  null,
  ['acme'],
  { $ne: 'nobody' },
  { toString: 'acme' },
];

type Headers = Record<string, string>;
let issuer: TokenIssuer;
let cluster: Database;
let documents: MongoClient;
let service: Service;

const signIn = (sub: string, org: unknown, scope = 'read') =>
  issuer.signIn({ sub, scope, ...(org !== undefined && { org }) }, AUDIENCE);
const keyed = (agent: string): Headers => ({ 'X-MCP-API-Key': `key-of-${agent}-0000` });
const listDatabases = async () =>
  (await documents.db().admin().listDatabases()).databases.map(({ name }) => name).sort();

beforeAll(async () => {
  [issuer, cluster] = await Promise.all([startTokenIssuer(), startDatabase({ schemas: [] })]);
  documents = new MongoClient(cluster.uri);
  for (const name of ['acme', 'globex', '7', 'kelvin', ...TAKEN])
    await documents
      .db(name)
      .collection('invoices')
      .insertMany([{ _id: shared, number: `${name}-1`, secret: `SECRET-${name}` }]);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      databases: {
        shop: { uri: 'embedded' },
        app: { uri: cluster.uri, storage: 'plain', name: '{tenant}' },
        fixed: { uri: cluster.uriOf('fixed'), storage: 'plain' },
      },
      agents: {
        reader: free,
        writer: { ...free, permissions: 'write' },
        proposer: { ...free, permissions: 'write', writes: 'proposed' },
        chief: { rateLimit: 1_000_000, permissions: 'admin' },
        acmes: { rateLimit: 1_000_000, permissions: 'admin', tenantId: 'acme' },
        globexes: { rateLimit: 1_000_000, permissions: 'admin', tenantId: 'globex' },
      },
      auth: [
        {
          agent: 'reader',
          oauth: {
            issuer: issuer.issuer,
            audience: AUDIENCE,
            scopes: { write: 'writer', propose: 'proposer' },
          },
        },
        ...['chief', 'acmes', 'globexes'].map((agent) => ({ apiKey: `key-of-${agent}-0000`, agent })),
      ],
      approvals: { mode: 'desk', approvers: ['chief', 'acmes', 'globexes'], expiry: 60 },
      console: { operators: ['chief', 'acmes', 'globexes'] },
      changes: { record: 'all' },
      plugins: [fileURLToPath(new URL('../../fixtures/plugins/reading-invoices.mjs', import.meta.url))],
      policy: {
        requireApprovalFor: ['write'],
        classes: {
          Invoice: {
            database: 'app',
            collection: 'invoices',
            properties: { number: { type: 'String' }, secret: { type: 'String' } },
          },
        },
      },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 120_000);
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await Promise.all([cluster?.stop(), issuer?.close()]);
});

/** A request of a client that follows tasks. */
async function modern(method: string, params: Record<string, unknown>, headers: Headers) {
  const { body, text } = await askModern(service, method, params, headers);
  return { result: body['result'] as Record<string, unknown> | undefined, error: body.error, text };
}
const startTask = async (until: string, headers: Headers) =>
  modern('tools/call', { name: 'read_slowly', arguments: { until } }, headers);
const delegate = (options: object, headers: Headers, tool = 'query_class', args: object = {}) =>
  callTool(service, 'delegate', { options, tool, args: { class_name: 'Invoice', ...args } }, headers);

interface Page {
  readonly status: number;
  readonly text: string;
}
async function open(path: string, headers: Headers, body?: object): Promise<Page> {
  const response = await fetch(service.origin + path, {
    method: body ? 'POST' : 'GET',
    headers: { ...headers, ...(body && { 'Content-Type': 'application/json', 'X-Parley-Console': '1' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

describe('a tenant that names no database of its own', () => {
  it.each(HOSTILE.map((org) => [JSON.stringify(org).slice(0, 40), org] as const))(
    'reads, exports, delegates and writes nothing: %s',
    async (_, org) => {
      const before = await listDatabases();
      const [reader, writer] = [await signIn('eve', org), await signIn('eve', org, 'write')];
      const until = join(folder, 'now');
      writeFileSync(until, '');
      const answers = [
        await callTool(service, 'query_class', { class_name: 'Invoice' }, reader),
        await callTool(service, 'export_data', { class_name: 'Invoice' }, reader),
        await callTool(service, 'export_data', { class_name: 'Invoice', delivery: 'resource' }, reader),
        await callTool(service, 'get_schema', { class_name: 'Invoice' }, reader),
        await callTool(
          service,
          'create_object',
          { class_name: 'Invoice', fields: { number: 'stolen' } },
          writer,
        ),
      ];
      for (const { isError, rpcError, wire } of answers) {
        expect(isError || rpcError !== undefined || wire.includes('"error"')).toBe(true);
        expect(wire).not.toMatch(/SECRET|127\.0\.0\.1|mongodb/);
      }
      const others = [
        (await delegate({}, reader)).wire,
        (await startTask(until, reader)).text,
        (await rpc(service, 'resources/read', { uri: 'parse://Invoice/samples' }, reader)).text,
        (await rpc(service, 'tools/list', {}, reader)).text,
        (await rpc(service, 'resources/list', {}, reader)).text,
      ];
      for (const text of others) expect(text).not.toMatch(/SECRET|127\.0\.0\.1|mongodb/);
      expect(await listDatabases()).toEqual(before);
    },
  );

  it('has a task that ends with a refusal, as the call does', async () => {
    const eve = await signIn('eve', 'Acme');
    const until = join(folder, 'at-once');
    writeFileSync(until, '');
    const { result } = await startTask(until, eve);
    await vi.waitFor(async () => {
      const { text } = await modern('tasks/get', { taskId: result?.['taskId'] }, eve);
      expect(text).toMatch(/"status":"(completed|failed)"/);
      expect(text).toContain('tenant');
      expect(text).not.toContain('SECRET');
    }, SOON);
  });
});

describe('one person with tokens of two tenants', () => {
  it('finds with one no task of the other, and each task reads the database of its own', async () => {
    const [here, there] = [await signIn('dora', 'acme'), await signIn('dora', 'globex')];
    const until = join(folder, 'later');
    const [own, other] = [await startTask(until, here), await startTask(until, there)];
    const [taskId, its] = [own, other].map(({ result }) => String(result?.['taskId']));
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const foreign = await modern(method, { taskId, inputResponses: {} }, there);
      expect(foreign.error).toMatchObject({ code: -32602, message: 'Unknown task' });
    }
    writeFileSync(until, '');
    const ended = async (id: string | undefined, headers: Headers) =>
      vi.waitFor(async () => {
        const { result, text } = await modern('tasks/get', { taskId: id }, headers);
        expect(result).toMatchObject({ status: 'completed' });
        return text;
      }, SOON);
    const [first, second] = [await ended(taskId, here), await ended(its, there)];
    expect([first.includes('SECRET-acme'), first.includes('globex')]).toEqual([true, false]);
    expect([second.includes('SECRET-globex'), second.includes('acme')]).toEqual([true, false]);
    expect((await modern('tasks/get', { taskId }, there)).text).not.toContain('SECRET');
  });

  it('finds with one no export of the other, and each file is of the database of its own', async () => {
    const [here, there] = [await signIn('dora', 'acme'), await signIn('dora', 'globex')];
    const asked = { class_name: 'Invoice', delivery: 'resource' };
    const { uri, path } = (await callTool(service, 'export_data', asked, here)).data as Record<
      string,
      string
    >;
    await callTool(service, 'export_data', asked, there);
    expect((await rpc(service, 'resources/list', {}, there)).text).not.toContain(uri);
    expect((await rpc(service, 'resources/read', { uri }, there)).body.error).toMatchObject({
      message: 'Resource not found',
    });
    for (const method of ['GET', 'DELETE']) {
      const response = await fetch(`${service.origin}${path}`, { method, headers: there });
      expect([response.status, await response.text()]).toEqual([404, expect.not.stringContaining('SECRET')]);
    }
    const { status, text } = await open(String(path), here);
    expect([status, text.includes('SECRET-acme'), text.includes('globex')]).toEqual([200, true, false]);
  });
});

describe('a sub-agent', () => {
  it.each<[string, object]>([
    ['as it is', {}],
    ['named as another tenant', { name: 'globex' }],
    ['with another tenant', { tenantId: 'globex' }],
    ['with the claim of another tenant', { tenantId: { claim: 'sub' }, claims: { org: 'globex' } }],
    ['with a filter that names another database', { filters: { 'globex.invoices': {} } }],
    ['for the class of another database', { classes: { only: ['Invoice', 'globex.invoices'] } }],
  ])('reads the database of its tenant alone: %s', async (_, options) => {
    const acme = await signIn('globex', 'acme');
    for (const args of [{}, { class_name: 'globex.invoices' }, { database: 'globex' }]) {
      const { wire, isError } = await delegate(options, acme, 'query_class', args);
      expect(wire).not.toMatch(/SECRET-(?!acme)|globex-1/);
      if (Object.keys(args).length === 0 && !('tenantId' in options) && !('filters' in options))
        expect([isError, wire.includes('SECRET-acme')]).toEqual([false, true]);
    }
  });
});

describe('an operator', () => {
  const PAGES = 'overview approvals live changes audit tasks exports status state policy metadata agents'
    .split(' ')
    .map((page) => `/console/api/${page}`);

  it('of one tenant sees no row, approval or change set of another on any page of the console', async () => {
    const proposer = await signIn('alice', 'acme', 'propose');
    const fields = { number: 'PROPOSED-by-acme' };
    const proposed = await callTool(service, 'create_object', { class_name: 'Invoice', fields }, proposer);
    const set = String(proposed.data['change_set']);
    const submitting = callTool(service, 'submit_changes', { title: 'a set', reason: 'why' }, proposer);
    const writing = callTool(
      service,
      'create_object',
      { class_name: 'Invoice', fields: { number: 'WRITTEN-by-acme' } },
      await signIn('alice', 'acme', 'write'),
    );
    const cases = async (agent: string) =>
      (JSON.parse((await open('/approvals', keyed(agent))).text) as { approvals: { id: string }[] })
        .approvals;
    await vi.waitFor(async () => expect(await cases('acmes')).toHaveLength(2), SOON);
    expect([await cases('globexes'), await cases('chief')]).toEqual([[], []]);
    for (const { id } of await cases('acmes')) {
      const shown = await open(`/console/api/approvals/${id}`, keyed('acmes'));
      expect([shown.status, shown.text.includes('by-acme')]).toEqual([200, true]);
      for (const agent of ['globexes', 'chief']) {
        const hidden = await open(`/console/api/approvals/${id}`, keyed(agent));
        expect([hidden.status, hidden.text.includes('by-acme')]).toEqual([404, false]);
      }
      const { digest } = JSON.parse(shown.text) as { digest: string };
      const decision = { decision: 'approve', digest };
      expect((await open(`/console/api/approvals/${id}`, keyed('globexes'), decision)).status).toBe(404);
      expect((await open(`/console/api/approvals/${id}`, keyed('acmes'), decision)).status).toBe(200);
    }
    expect([(await submitting).isError, (await writing).isError]).toEqual([false, false]);
    for (const agent of ['globexes', 'chief']) {
      for (const page of [...PAGES, `/console/api/changes/${set}`]) {
        if (page.endsWith('live')) continue;
        const { text } = await open(page, keyed(agent));
        expect([agent, page, text.match(/SECRET|by-acme/g)]).toEqual([agent, page, null]);
      }
      const unknown = `${set.slice(0, -4)}zzzz`;
      const [hidden, none] = [
        await open(`/console/api/changes/${set}`, keyed(agent)),
        await open(`/console/api/changes/${unknown}`, keyed(agent)),
      ];
      expect([none.status, hidden.status]).toEqual([400, 400]);
      expect(hidden.text.replaceAll(set, '')).toBe(none.text.replaceAll(unknown, ''));
    }
    expect((await open(`/console/api/changes/${set}`, keyed('acmes'))).text).toContain('PROPOSED-by-acme');
    expect(await documents.db('globex').collection('invoices').countDocuments({})).toBe(1);
    expect(await documents.db('acme').collection('invoices').countDocuments({})).toBe(3);
  });

  it('explains a call of a tenant without a row of its database', async () => {
    const order = { agent: 'acmes', tool: 'query_class', args: { class_name: 'Invoice' } };
    const { status, text } = await open('/console/api/explain', keyed('globexes'), order);
    expect([status, text.match(/SECRET|127\.0\.0\.1/g)]).toEqual([200, null]);
  });
});
