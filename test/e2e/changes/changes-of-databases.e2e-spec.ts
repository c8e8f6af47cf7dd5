import { MongoClient, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000, permissions: 'admin' };
const AGENTS = {
  acme: { ...free, tenantId: 'acme', writes: 'proposed' },
  globex: { ...free, tenantId: 'globex', writes: 'proposed' },
  writer: { ...free, tenantId: 'acme' },
  chief: { ...free, tenantId: 'acme' },
  boss: { ...free, tenantId: 'globex' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': agent });
const text = { type: 'String' };
const SEED = { schemas: [{ className: 'Plan', fields: { name: text } }], objects: { Plan: [] } };
const [ada, bob, bill] = [new ObjectId(), new ObjectId(), new ObjectId()];

let shop: Database;
let others: Database;
let documents: MongoClient;
let service: Service;

const start = (record: string) =>
  startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      databases: {
        shop: { uri: shop.uri, name: 'parley' },
        crm: { uri: others.uriOf('crm'), storage: 'plain' },
        app: { uri: others.uriOf('unused'), storage: 'plain', name: 't_{tenant}' },
        old: { uri: others.uriOf('old'), storage: 'plain', readOnly: true },
      },
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: agent, agent })),
      approvals: { mode: 'desk', approvers: ['chief', 'boss'], expiry: 60 },
      changes: { undo: 'agents', record },
      policy: {
        classes: {
          Plan: {},
          Customer: { database: 'crm', collection: 'customers', properties: { name: text } },
          Invoice: { database: 'app', collection: 'invoices', properties: { number: text } },
          Bill: { database: 'old', collection: 'bills', properties: { number: text } },
        },
      },
    },
    env: {
      PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
      PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
    },
  });

beforeAll(async () => {
  [shop, others] = await Promise.all([startDatabase(SEED), startDatabase({ schemas: [] })]);
  documents = new MongoClient(others.uriOf('crm'));
  await documents
    .db('crm')
    .collection('customers')
    .insertMany([
      { _id: ada, name: 'Ada' },
      { _id: bob, name: 'Bob' },
    ]);
  for (const tenant of ['acme', 'globex'])
    await documents.db(`t_${tenant}`).collection('invoices').insertOne({ _id: bill, number: tenant });
  await documents.db('old').collection('bills').insertOne({ _id: bill, number: 'B1' });
  service = await start('all');
}, 90_000);
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await Promise.all([shop?.stop(), others?.stop()]);
});

const call = (name: string, args: object, agent: AgentName = 'acme') =>
  callTool(service, name, args, as(agent));
const rename = (id: ObjectId, name: string, agent: AgentName = 'acme') =>
  call('update_object', { class_name: 'Customer', object_id: String(id), fields: { name } }, agent);
const renumber = (number: string, agent: AgentName) =>
  call('update_object', { class_name: 'Invoice', object_id: String(bill), fields: { number } }, agent);
const nameOf = async (id: ObjectId) =>
  (await documents.db('crm').collection('customers').findOne({ _id: id }))?.['name'] as string | undefined;
const numberOf = async (tenant: string) =>
  (await documents.db(`t_${tenant}`).collection('invoices').findOne({ _id: bill }))?.['number'] as string;

async function approve(agent: AgentName): Promise<void> {
  for (;;) {
    const headers = as(agent);
    const { approvals } = (await (await fetch(`${service.origin}/approvals`, { headers })).json()) as {
      approvals: { id: string }[];
    };
    const [first] = approvals;
    if (first) {
      const place = `${service.origin}/approvals/${first.id}`;
      const { digest } = (await (await fetch(place, { headers })).json()) as { digest: string };
      const body = JSON.stringify({ decision: 'approve', digest });
      await fetch(place, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body,
      });
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe('A change set of a database beside the first one', () => {
  it('is applied there as one, and taken back', async () => {
    const { change_set: set } = (await rename(ada, 'Ada L.')).data;
    await call('delete_object', { class_name: 'Customer', object_id: String(bob) });
    await call('create_object', { class_name: 'Customer', fields: { name: 'Cy' } });
    expect(await nameOf(ada)).toBe('Ada');
    const submitted = call('submit_changes', { title: 'a', reason: 'b' });
    await approve('chief');
    expect((await submitted).data).toMatchObject({
      applied: true,
      rows: { created: 1, changed: 1, deleted: 1 },
    });
    expect([await nameOf(ada), await nameOf(bob)]).toEqual(['Ada L.', undefined]);
    expect((await call('show_changes', { change_set: set })).data).toMatchObject({ state: 'applied' });
    const undone = call('undo_changes', { change_set: set });
    await approve('chief');
    expect((await undone).data).toMatchObject({ applied: true });
    expect([await nameOf(ada), await nameOf(bob)]).toEqual(['Ada', 'Bob']);
    expect(await documents.db('crm').collection('customers').countDocuments({})).toBe(2);
    expect((await call('undo_changes', { change_set: set })).text).toContain('taken back already');
    expect(await documents.db('crm').collection('parley.settled').countDocuments({})).toBe(0);
  });

  it('takes no row of another database', async () => {
    const { change_set: set } = (await rename(ada, 'Ada L.')).data;
    const refused = await call('create_object', { class_name: 'Plan', fields: { name: 'gold' } });
    expect([refused.code, refused.details]).toEqual(['invalid_argument', { kind: 'cross_database' }]);
    expect(refused.text).toContain('Submit or discard the open change set first');
    expect((await renumber('stolen', 'acme')).details).toEqual({ kind: 'cross_database' });
    await call('discard_changes', { change_set: set });
    const { change_set: next } = (
      await call('create_object', { class_name: 'Plan', fields: { name: 'gold' } })
    ).data;
    expect((await rename(ada, 'no')).details).toEqual({ kind: 'cross_database' });
    await call('discard_changes', { change_set: next });
    expect(await nameOf(ada)).toBe('Ada');
  });

  it('changes nothing where one of its rows was changed by somebody else', async () => {
    const { change_set: set } = (await rename(ada, 'Ada L.')).data;
    await rename(bob, 'Bob B.');
    await documents
      .db('crm')
      .collection('customers')
      .updateOne({ _id: bob }, { $set: { name: 'Rob' } });
    expect((await call('submit_changes', { title: 'a', reason: 'b' })).text).toContain('changed this row');
    expect(await nameOf(ada)).toBe('Ada');
    await call('discard_changes', { change_set: set });
    await documents
      .db('crm')
      .collection('customers')
      .updateOne({ _id: bob }, { $set: { name: 'Bob' } });
  });

  it('is refused where the database is only read', async () => {
    const refused = await call('update_object', {
      class_name: 'Bill',
      object_id: String(bill),
      fields: { number: 'x' },
    });
    expect(refused.details).toEqual({ kind: 'read_only_database' });
  });

  it('is applied in the database of the tenant whose agent proposed it, and in no other', async () => {
    await renumber('acme-2', 'acme');
    await renumber('globex-2', 'globex');
    const submitted = call('submit_changes', { title: 'a', reason: 'b' }, 'acme');
    await approve('chief');
    const { change_set: set, applied } = (await submitted).data;
    expect([applied, await numberOf('acme'), await numberOf('globex')]).toEqual([true, 'acme-2', 'globex']);
    expect((await call('show_changes', { change_set: set }, 'globex')).wire).not.toContain('acme-2');
    expect((await call('list_changes', {}, 'globex')).wire).not.toMatch(/acme/);
    const other = call('submit_changes', { title: 'a', reason: 'b' }, 'globex');
    await approve('boss');
    expect([(await other).data['applied'], await numberOf('acme'), await numberOf('globex')]).toEqual([
      true,
      'acme-2',
      'globex-2',
    ]);
    const undone = call('undo_changes', { change_set: set }, 'acme');
    await approve('chief');
    expect([(await undone).data['applied'], await numberOf('acme'), await numberOf('globex')]).toEqual([
      true,
      'acme',
      'globex-2',
    ]);
  });

  it('is kept of every write with record: all', async () => {
    const written = await rename(ada, 'Ada W.', 'writer');
    expect([written.isError, await nameOf(ada)]).toEqual([false, 'Ada W.']);
    expect((await renumber('acme-w', 'writer')).isError).toBe(false);
    const { change_sets: listed } = (await call('list_changes', {}, 'writer')).data as {
      change_sets: { change_set: string; kind: string; state: string }[];
    };
    expect(listed).toMatchObject([
      { kind: 'direct', state: 'applied' },
      { kind: 'direct', state: 'applied' },
    ]);
    for (const { change_set } of listed) {
      const undone = call('undo_changes', { change_set }, 'writer');
      await approve('chief');
      expect((await undone).data).toMatchObject({ applied: true });
    }
    expect([await nameOf(ada), await numberOf('acme')]).toEqual(['Ada', 'acme']);
  });
});
