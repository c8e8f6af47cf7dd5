import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { SECRET } from '../../fixtures/posts.fixture.js';
import type { DatabaseView } from '../../support/database-dump.js';
import { decideApproval } from '../../support/decide-approval.js';
import { servePosts } from '../../support/posts-service.js';
import { callTool, GATES_OPEN, rpc, type Service } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const free = { permissions: 'admin', rateLimit: 1_000_000 };
const AGENTS = {
  support: { ...free, tenantId: 'acme', writes: 'proposed' },
  other: { ...free, tenantId: 'globex', writes: 'proposed' },
  writer: { ...free, tenantId: 'acme' },
  chief: { ...free, tenantId: 'acme' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
/** What another tenant has written into a row since. */
const FOREIGN = 'of another tenant by now';
const SOON = { timeout: 20_000, interval: 50 };

const folder = makeFolder('images');
let view: DatabaseView;
let service: Service;
beforeAll(async () => {
  ({ service, view } = await servePosts(
    AGENTS,
    {
      approvals: { mode: 'desk', approvers: ['chief'], expiry: 60 },
      console: { operators: ['chief'] },
      changes: { undo: 'agents', record: 'all' },
      audit: { sinks: [{ kind: 'file', path: join(folder, 'audit.jsonl') }] },
    },
    GATES_OPEN,
  ));
}, 90_000);

/** Everything that was answered. */
const wires: string[] = [];
async function call(name: string, args: object, agent: AgentName = 'support') {
  const answer = await callTool(service, name, args, as(agent));
  wires.push(answer.wire);
  return answer;
}
async function ask(method: string, params: object, agent: AgentName = 'support') {
  const answer = await rpc(service, method, params, as(agent));
  wires.push(answer.text);
  return answer;
}
async function route(path: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(service.origin + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...as('chief'),
      ...(body && { 'Content-Type': 'application/json', 'X-Parley-Console': '1' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  wires.push(text);
  return JSON.parse(text) as Record<string, unknown>;
}

/** Submits or takes back, reads what the approver is shown, and approves it. */
async function approved(name: string, args: object): Promise<Awaited<ReturnType<typeof call>>> {
  const waiting = call(name, args);
  const id = await vi.waitUntil(async () => {
    const { approvals } = await route('/approvals');
    return (approvals as { id: string }[])[0]?.id;
  }, SOON);
  await route(`/approvals/${String(id)}`);
  await decideApproval(`${service.origin}/approvals/${String(id)}`, as('chief'), { decision: 'approve' });
  return waiting;
}

/** Reads a set in every way there is. */
async function readEverywhere(set: string): Promise<void> {
  await call('show_changes', { change_set: set });
  await call('list_changes', {});
  await ask('resources/list', {});
  await ask('resources/read', { uri: `parse://changes/${set}` });
  await route('/console/api/changes');
  await route(`/console/api/changes/${set}`);
  await route('/console/api/changes/undo', { change_set: set });
}

const posts = () => view.client.db('parley').collection<{ _id: string }>('Post');

describe('The rows before changes', () => {
  it('show nothing that is hidden of them, wherever a set is read, submitted, applied and taken back', async () => {
    expect(JSON.stringify(await posts().findOne({ _id: 'p03' }))).toContain(SECRET);
    const { data } = await call('delete_object', { class_name: 'Post', object_id: 'p03' });
    const set = String(data['change_set']);
    await call('update_object', { class_name: 'Post', object_id: 'p06', fields: { title: 'New' } });
    await readEverywhere(set);
    expect((await approved('submit_changes', { title: 'a', reason: 'b' })).data).toMatchObject({
      applied: true,
    });
    await readEverywhere(set);
    expect((await approved('undo_changes', { change_set: set })).data).toMatchObject({ applied: true });
    await readEverywhere(set);
    expect(JSON.stringify(await posts().findOne({ _id: 'p03' }))).toContain(SECRET);
    await call('delete_object', { class_name: 'Post', object_id: 'p09' }, 'writer');
    const { change_sets: sets } = await route('/console/api/changes?agent=writer');
    await readEverywhere((sets as { change_set: string }[])[0]?.change_set ?? '');
    expect(wires.join('\n')).toContain('Post 9');
    expect(wires.join('\n')).not.toContain(SECRET);
  });

  it('are shown to nobody of the first tenant as another one has made them since', async () => {
    const { data } = await call('update_object', {
      class_name: 'Post',
      object_id: 'p12',
      fields: { title: 'Ours' },
    });
    const set = String(data['change_set']);
    await approved('submit_changes', { title: 'c', reason: 'd' });
    await posts().updateOne(
      { _id: 'p12' },
      { $set: { orgId: 'globex', title: FOREIGN, _updated_at: new Date() } },
    );
    const undone = await call('undo_changes', { change_set: set });
    expect(undone.isError).toBe(true);
    await readEverywhere(set);
    const stolen = await call('undo_changes', { change_set: set }, 'other');
    expect(stolen.text).toContain('there is no such change set');
    expect(wires.join('\n')).not.toContain(FOREIGN);
    expect((await posts().findOne({ _id: 'p12' }))?._id).toBe('p12');
  });

  it('stay as they are, and unrecorded, where the row is that of several tenants', async () => {
    const shared = { _id: 'shared', orgId: ['acme', 'globex'], title: 'Ours', _updated_at: new Date(5) };
    await posts().insertOne(shared);
    const sets = view.client.db('parley').collection('parley.changes');
    const known = await sets.countDocuments();
    const named = { class_name: 'Post', object_id: 'shared' };
    for (const [name, more] of [
      ['update_object', { fields: { title: 'Mine' } }],
      ['delete_object', {}],
    ] as const)
      expect((await call(name, { ...named, ...more }, 'writer')).text).toContain('no object of class');
    expect(await posts().findOne({ _id: 'shared' })).toEqual(shared);
    expect(await sets.countDocuments()).toBe(known);
  });

  it.each(['parley.changes', 'parley.settled', '_parley.changes'])(
    'lie in a collection that no tool, no resource and no export reads: %s',
    async (name) => {
      const about = { class_name: name };
      const from = (stage: object) => ['aggregate', { class_name: 'Post', pipeline: [stage] }] as const;
      const ways: readonly (readonly [tool: string, args: object])[] = [
        ['query_class', about],
        ['count_objects', about],
        ['get_sample_objects', about],
        ['get_schema', about],
        ['distinct', { ...about, field: 'sealed' }],
        ['group_by', { ...about, field: 'state' }],
        ['aggregate', { ...about, pipeline: [{ $match: {} }] }],
        ['export_data', about],
        ['export_data', { ...about, delivery: 'resource' }],
        ['delete_object', { ...about, object_id: 'x' }],
        ['create_object', { ...about, fields: { state: 'applied' } }],
        ['create_class', about],
        ['delete_class', about],
        from({ $lookup: { from: name, pipeline: [], as: 'x' } }),
        from({ $lookup: { from: name, localField: 'title', foreignField: 'state', as: 'x' } }),
        from({ $unionWith: name }),
        from({
          $graphLookup: {
            from: name,
            startWith: '$title',
            connectFromField: 'agent',
            connectToField: 'agent',
            as: 'x',
          },
        }),
        [
          'query_class',
          { class_name: 'Post', where: { title: { $inQuery: { className: name, where: {} } } } },
        ],
        [
          'query_class',
          {
            class_name: 'Post',
            where: { title: { $select: { query: { className: name, where: {} }, key: 'sealed' } } },
          },
        ],
      ];
      const stored = view.client.db('parley').collection('parley.changes');
      const ids = new RegExp((await stored.distinct('_id')).map(String).join('|'));
      for (const [tool, args] of ways) {
        const answer = await call(tool, args, 'writer');
        // A class that there is not joins nothing.
        if ('class_name' in args && args.class_name === name)
          expect([tool, answer.isError]).toEqual([tool, true]);
        expect(answer.wire).not.toMatch(ids);
      }
      for (const kind of ['schema', 'count', 'samples'])
        expect(
          (await ask('resources/read', { uri: `parse://${name}/${kind}` }, 'writer')).body.error,
        ).toBeDefined();
      expect(String(ids).length).toBeGreaterThan(40);
    },
  );

  it('stand in no log, no audit record and no readable form', async () => {
    const { stdout, stderr } = service.output();
    const stored = await view.client.db('parley').collection('parley.changes').find({}).toArray();
    expect(stored.length).toBeGreaterThan(3);
    const records = readFileSync(join(folder, 'audit.jsonl'), 'utf8');
    expect(records).toContain('"step":"undone"');
    for (const text of [stdout, stderr, records, JSON.stringify(stored)])
      expect(text).not.toMatch(new RegExp(`${SECRET}|Body of post|${FOREIGN}`));
  });
});
