import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000 };
const AGENTS = {
  support: { ...free, permissions: 'admin', tenantId: 'acme', writes: 'proposed' },
  other: { ...free, permissions: 'admin', tenantId: 'globex', writes: 'proposed' },
  writer: { ...free, permissions: 'admin', tenantId: 'acme' },
  chief: { ...free, permissions: 'admin', tenantId: 'acme' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const ENV = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
};

let database: Database;
let view: DatabaseView;
let service: Service;

beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  view = viewDatabase(database.uri);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: POSTS_POLICY,
      database: { uri: database.uri, name: 'parley' },
      approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
      changes: { undo: 'agents' },
    },
    env: ENV,
  });
}, 90_000);
afterAll(async () => {
  await service.stop();
  await view.close();
  await database.stop();
});

const posts = () => view.client.db('parley').collection<{ _id: string; title: string }>('Post');
const dump = async () => JSON.stringify(await posts().find({}).sort({ _id: 1 }).toArray());
const call = (name: string, args: object, agent: AgentName = 'support') =>
  callTool(service, name, args, as(agent));

async function decideFirst(decision: 'approve' | 'deny'): Promise<Record<string, unknown>> {
  for (;;) {
    const headers = as('chief');
    const listed = (await (await fetch(`${service.origin}/approvals`, { headers })).json()) as {
      approvals: { id: string }[];
    };
    const [first] = listed.approvals;
    if (first) {
      const shown = (await (
        await fetch(`${service.origin}/approvals/${first.id}`, { headers })
      ).json()) as Record<string, unknown>;
      await fetch(`${service.origin}/approvals/${first.id}`, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body: JSON.stringify({ decision, digest: shown['digest'] }),
      });
      return shown;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const dataOf = (answer: unknown) => (answer as { data: Record<string, unknown> }).data;
const textOf = (answer: unknown) => (answer as { text: string }).text;
const update = (id: string, title: string, agent: AgentName = 'support') =>
  call('update_object', { class_name: 'Post', object_id: id, fields: { title } }, agent);

describe('An agent whose writes are proposed', () => {
  it('changes nothing until somebody has approved all of it, and can take it back', async () => {
    const before = await dump();
    const { change_set: set, ...updated } = dataOf(await update('p00', 'New'));
    expect(updated).toMatchObject({
      proposed: true,
      entry: 1,
      before: { title: 'Post 0' },
      after: { title: 'New' },
    });
    const created = dataOf(await call('create_object', { class_name: 'Post', fields: { title: 'Made' } }));
    const made = String(created['object_id']);
    expect(dataOf(await update(made, 'Made again'))).toMatchObject({
      entry: 2,
      after: { title: 'Made again' },
    });
    expect(dataOf(await call('delete_object', { class_name: 'Post', object_id: 'p03' }))).toMatchObject({
      entry: 3,
    });
    expect(await dump()).toBe(before);
    const submitted = call('submit_changes', { title: 'Rename', reason: 'asked by the customer' });
    const shown = await decideFirst('approve');
    expect(shown['preview']).toMatchObject({
      title: 'Rename',
      rows: { created: 1, changed: 1, deleted: 1 },
      changes: [{ entry: 1 }, { entry: 2 }, { entry: 3 }],
    });
    expect(dataOf(await submitted)).toMatchObject({ applied: true, change_set: set });
    expect((await posts().findOne({ _id: 'p00' }))?.title).toBe('New');
    expect((await posts().findOne({ _id: made }))?.title).toBe('Made again');
    expect(await posts().findOne({ _id: 'p03' })).toBe(null);
    const undone = call('undo_changes', { change_set: set });
    await decideFirst('approve');
    expect(dataOf(await undone)).toMatchObject({
      applied: true,
      rows: { created: 1, changed: 1, deleted: 1 },
    });
    expect(await dump()).toBe(before);
    expect(textOf(await call('undo_changes', { change_set: set }))).toContain('taken back already');
  });

  it('applies nothing where one row is not as it was', async () => {
    const { change_set: set } = dataOf(await update('p00', 'New'));
    await update('p03', 'New too');
    await update('p03', 'Of a writer', 'writer');
    const before = await dump();
    const refused = await call('submit_changes', { title: 'a', reason: 'b' });
    expect(textOf(refused)).toContain('Post p03: somebody has changed this row since');
    expect(await dump()).toBe(before);
    expect(dataOf(await call('refresh_changes', { change_set: set }))).toMatchObject({ state: 'open' });
    const submitted = call('submit_changes', { title: 'a', reason: 'b' });
    await decideFirst('deny');
    expect(textOf(await submitted)).toContain('operation rejected by approver');
    expect(await dump()).toBe(before);
    expect(dataOf(await call('show_changes', { change_set: set }))).toMatchObject({ state: 'refused' });
  });

  it('has no set of another tenant, and no other way to write', async () => {
    const { change_set: set } = dataOf(await update('p00', 'New'));
    for (const tool of ['show_changes', 'discard_changes', 'refresh_changes', 'undo_changes'])
      expect(textOf(await call(tool, { change_set: set }, 'other'))).toContain('there is no such change set');
    const stolen = { change_set: set, title: 'a', reason: 'b' };
    expect(textOf(await call('submit_changes', stolen, 'other'))).toContain('there is no such change set');
    expect(textOf(await call('create_class', { class_name: 'Later' }))).toContain(
      'writes of this agent are proposed',
    );
    expect(textOf(await call('list_changes', {}, 'writer'))).toContain('not collected in change sets');
    expect(dataOf(await call('discard_changes', { change_set: set }))).toMatchObject({ state: 'discarded' });
  });
});
