import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type DatabaseView, viewDatabase } from '../../support/database-dump.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000 };
const AGENTS = {
  support: { ...free, permissions: 'admin', tenantId: 'acme', writes: 'proposed' },
  other: { ...free, permissions: 'admin', tenantId: 'globex', writes: 'proposed' },
  writer: { ...free, permissions: 'admin', tenantId: 'acme' },
  chief: { ...free, permissions: 'admin', tenantId: 'acme' },
  clerk: { ...free, tenantId: 'acme', classes: { only: ['Author'] } },
  direct: { ...free, permissions: 'admin', tenantId: 'acme' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const ENV = {
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
};

const COMMAND = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));

let database: Database;
let view: DatabaseView;
let service: Service;

const start = (changes: object = {}, agents: object = AGENTS) =>
  startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: POSTS_POLICY,
      database: { uri: database.uri, name: 'parley' },
      approvals: { mode: 'desk', approvers: ['chief', 'clerk'], expiry: 60 },
      changes: { undo: 'agents', ...changes },
    },
    env: ENV,
  });

beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  view = viewDatabase(database.uri);
  service = await start();
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

async function firstCase(agent: AgentName = 'chief', at = service): Promise<Record<string, unknown>> {
  for (;;) {
    const headers = as(agent);
    const listed = (await (await fetch(`${at.origin}/approvals`, { headers })).json()) as {
      approvals: { id: string }[];
    };
    const [first] = listed.approvals;
    if (first) {
      const shown = await fetch(`${at.origin}/approvals/${first.id}`, { headers });
      return (await shown.json()) as Record<string, unknown>;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const decide = (
  shown: Record<string, unknown>,
  decision: 'approve' | 'deny',
  agent: AgentName = 'chief',
  at = service,
) =>
  fetch(`${at.origin}/approvals/${String(shown['id'])}`, {
    method: 'POST',
    headers: { ...as(agent), 'Content-Type': 'application/json' },
    body: JSON.stringify({ decision, digest: shown['digest'] }),
  });

async function decideFirst(decision: 'approve' | 'deny'): Promise<Record<string, unknown>> {
  const shown = await firstCase();
  await decide(shown, decision);
  return shown;
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
    expect(textOf(await submitted)).toContain('operation denied by approver');
    expect(await dump()).toBe(before);
    expect(dataOf(await call('show_changes', { change_set: set }))).toMatchObject({ state: 'denied' });
  });

  it('adds every one of forty writes that it makes at once to one set', async () => {
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        call('create_object', { class_name: 'Post', fields: { title: `At once ${at}` } }),
      ),
    );
    const made = answers.map(dataOf);
    const [set, ...others] = new Set(made.map(({ change_set: id }) => id));
    expect(others).toEqual([]);
    expect(made.map(({ entry }) => Number(entry)).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, at) => at + 1),
    );
    await call('discard_changes', { change_set: set });
  });

  it('is approved or denied as a whole on the command line, as it was shown', async () => {
    const run = (...args: readonly string[]) =>
      promisify(execFile)(process.execPath, [COMMAND, 'changes', ...args, '--url', service.origin], {
        env: { ...process.env, PARLEY_API_KEY: 'key-of-chief' },
      });
    const states: unknown[] = [];
    for (const decision of ['deny', 'approve']) {
      const { change_set: id } = dataOf(await update('p06', 'Decided'));
      const set = String(id);
      const submitted = call('submit_changes', { title: decision, reason: 'b' });
      const shown = await firstCase();
      await expect(run(decision, set)).rejects.toThrow(`parley approvals show ${String(shown['id'])}`);
      await run(decision, set, '--digest', String(shown['digest']));
      await submitted;
      states.push(dataOf(await call('show_changes', { change_set: set }))['state']);
    }
    expect(states).toEqual(['denied', 'applied']);
  });

  it('is not waited for once it is discarded, and the approver is told so', async () => {
    const { change_set: set } = dataOf(await update('p00', 'Withdrawn'));
    const submitted = call('submit_changes', { title: 'Withdrawn', reason: 'b' });
    const shown = await firstCase();
    expect(shown).toMatchObject({ change_set: set, status: 'pending' });
    await call('discard_changes', { change_set: set });
    expect(textOf(await submitted)).toContain('the change set was discarded');
    const headers = as('chief');
    const listed = await fetch(`${service.origin}/approvals`, { headers });
    expect(await listed.json()).toEqual({ approvals: [] });
    const read = await fetch(`${service.origin}/approvals/${String(shown['id'])}`, { headers });
    expect(await read.json()).toMatchObject({
      preview: { preview_error: 'this change set waits for nobody any more' },
    });
    expect((await decide(shown, 'approve')).status).toBe(409);
  });

  it('leaves twenty sets waiting at most', async () => {
    const sets: string[] = [];
    const submit = (title: string) => call('submit_changes', { title, reason: 'b' });
    const waiting: Promise<unknown>[] = [];
    for (let at = 0; at < 20; at += 1) {
      sets.push(String(dataOf(await update('p00', `Waits ${at}`))['change_set']));
      waiting.push(submit(`Waits ${at}`));
      const isSubmitted = async () => {
        const shown = dataOf(await call('show_changes', { change_set: sets.at(-1) }));
        expect(shown['state']).toBe('submitted');
      };
      await vi.waitFor(isSubmitted, { timeout: 20_000, interval: 10 });
    }
    sets.push(String(dataOf(await update('p00', 'One more'))['change_set']));
    expect(textOf(await submit('One more'))).toContain('20 of your change sets wait');
    for (const set of sets) await call('discard_changes', { change_set: set });
    await Promise.all(waiting);
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

  it('cannot have a set approved that changed after it was shown', async () => {
    const { change_set: set } = dataOf(await update('p00', 'Harmless'));
    const submitted = call('submit_changes', { title: 'a', reason: 'b' });
    const shown = await firstCase();
    // What is waiting takes no further writes: they go to another set.
    expect(dataOf(await update('p00', 'Harmful'))['change_set']).not.toBe(set);
    await call('refresh_changes', { change_set: set });
    const late = await decide(shown, 'approve');
    expect(late.status).toBe(412);
    await decideFirst('deny');
    expect(textOf(await submitted)).toContain('operation denied by approver');
    expect((await posts().findOne({ _id: 'p00' }))?.title).toBe('Post 0');
  });

  it('is decided on by those alone who may read every row of the set', async () => {
    await update('p03', 'Secret title');
    const submitted = call('submit_changes', { title: 'c', reason: 'd' });
    const seen = await firstCase('clerk');
    expect(JSON.stringify(seen)).not.toMatch(/Secret title|p03/);
    expect((await decide(seen, 'approve', 'clerk')).status).toBe(403);
    await decideFirst('deny');
    await submitted;
  });

  it('answers a write again that is repeated with its key, also once its set was submitted', async () => {
    const args = { class_name: 'Post', fields: { title: 'Once' }, idempotency_key: 'made-once' };
    const made = dataOf(await call('create_object', args));
    const submitted = call('submit_changes', { title: 'Once', reason: 'asked' });
    const shown = await firstCase();
    expect(dataOf(await call('create_object', args))).toEqual(made);
    await decide(shown, 'approve');
    await submitted;
    expect(dataOf(await call('create_object', args))).toMatchObject({
      change_set: made['change_set'],
      object_id: made['object_id'],
    });
    const other = { ...args, fields: { title: 'Twice' } };
    expect(textOf(await call('create_object', other))).toContain('was used for another call');
    await posts().deleteOne({ _id: String(made['object_id']) });
    // Of a set that was discarded nothing happens, and the write may be proposed anew.
    const again = { class_name: 'Post', fields: { title: 'Later' }, idempotency_key: 'made-later' };
    const { change_set: dropped } = dataOf(await call('create_object', again));
    await call('discard_changes', { change_set: dropped });
    const { change_set: anew } = dataOf(await call('create_object', again));
    expect(anew).not.toBe(dropped);
    await call('discard_changes', { change_set: anew });
  });

  it('does nothing as a set that it may no longer do as single writes', async () => {
    const { change_set: set } = dataOf(await call('delete_object', { class_name: 'Post', object_id: 'p03' }));
    const narrowed = await start({}, { ...AGENTS, support: { ...AGENTS.support, permissions: 'write' } });
    try {
      const args = { title: 'Delete', reason: 'asked' };
      const refused = await callTool(narrowed, 'submit_changes', args, as('support'));
      expect(textOf(refused)).toContain('delete_object');
      expect(await posts().findOne({ _id: 'p03' })).not.toBe(null);
    } finally {
      await narrowed.stop();
    }
    await call('discard_changes', { change_set: set });
  });

  it('leaves values of rows in no record, in no log, and in no readable form', async () => {
    await update('p03', 'Very private');
    const stored = await view.client.db('parley').collection('parley.changes').find({}).toArray();
    expect(stored.length).toBeGreaterThan(0);
    expect(JSON.stringify(stored)).not.toContain('Very private');
    expect(JSON.stringify(service.output())).not.toContain('Very private');
    expect(textOf(await call('query_class', { class_name: 'parley.changes' }, 'direct'))).not.toContain(
      'sealed',
    );
  });

  it('takes back a write that happened at once, where such writes are recorded', async () => {
    const recording = await start({ record: 'all' });
    try {
      const before = await dump();
      const at = (name: string, args: object) => callTool(recording, name, args, as('direct'));
      await at('update_object', { class_name: 'Post', object_id: 'p00', fields: { title: 'At once' } });
      await at('delete_object', { class_name: 'Post', object_id: 'p03' });
      expect(await dump()).not.toBe(before);
      const listed = dataOf(await at('list_changes', {}))['change_sets'] as {
        kind: string;
        change_set: string;
      }[];
      expect(listed.map(({ kind }) => kind)).toEqual(['direct', 'direct']);
      expect(dataOf(await at('list_changes', { limit: 2 }))).not.toHaveProperty('truncated');
      expect(dataOf(await at('list_changes', { limit: 1 }))).toMatchObject({
        change_sets: [listed[0]],
        truncated: true,
        hint: expect.stringContaining('Raise limit (max 100)') as string,
      });
      for (const { change_set: set } of listed) {
        const undone = at('undo_changes', { change_set: set });
        await decide(await firstCase('chief', recording), 'approve', 'chief', recording);
        expect(dataOf(await undone)).toMatchObject({ applied: true });
      }
      expect(await dump()).toBe(before);
      expect(textOf(await at('submit_changes', { title: 'a', reason: 'b' }))).toContain('happen at once');
    } finally {
      await recording.stop();
    }
  });

  it.each([0, 15, 40, 90, 200])(
    'is applied or not where its process is killed %i ms later',
    async (delay) => {
      const killed = await start();
      const make = async (at: number) =>
        dataOf(
          await callTool(
            killed,
            'create_object',
            { class_name: 'Post', fields: { title: `killed after ${delay}`, body: `row ${at}` } },
            as('support'),
          ),
        );
      let set = '';
      for (let at = 0; at < 40; at += 1) set = String((await make(at))['change_set']);
      const args = { title: `kill ${delay}`, reason: 'chaos', change_set: set };
      const submitted = callTool(killed, 'submit_changes', args, as('support')).catch(() => null);
      const decided = decide(await firstCase('chief', killed), 'approve', 'chief', killed).catch(() => null);
      await decided;
      await new Promise((resolve) => setTimeout(resolve, delay));
      await killed.kill();
      await submitted;
      const { state } = dataOf(await call('show_changes', { change_set: set }));
      const rows = await posts().countDocuments({ title: `killed after ${delay}` });
      expect({ state, rows }).toEqual(
        state === 'applied' ? { state, rows: 40 } : { state: 'submitted', rows: 0 },
      );
    },
  );
});
