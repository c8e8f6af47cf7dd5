import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { POSTS_SEED } from '../../fixtures/posts.fixture.js';
import type { DatabaseView } from '../../support/database-dump.js';
import { decideApproval } from '../../support/decide-approval.js';
import { servePosts } from '../../support/posts-service.js';
import { callTool, GATES_OPEN, type Service } from '../../support/service.js';

const free = { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000 };
const COMMAND = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));
const [{ sessionToken } = { sessionToken: '' }] = POSTS_SEED.sessions;

let view: DatabaseView;
let service: Service;

beforeAll(async () => {
  ({ service, view } = await servePosts(
    { helper: { ...free, writes: 'proposed', identity: { session: 'caller' } }, operator: free },
    {
      auth: [
        { apiKey: 'key-of-laptop', agent: 'helper', name: 'laptop' },
        { apiKey: 'key-of-ci', agent: 'helper', name: 'ci' },
        { apiKey: 'key-of-nobody', agent: 'helper' },
        { apiKey: 'key-of-operator', agent: 'operator' },
      ],
      approvals: { mode: 'desk', approvers: ['operator'], expiry: 60 },
      console: { operators: ['operator'] },
    },
    GATES_OPEN,
  ));
}, 90_000);

type KeyName = 'laptop' | 'ci' | 'nobody';
const call = (name: string, args: object, key: KeyName) =>
  callTool(service, name, args, {
    'X-MCP-API-Key': `key-of-${key}`,
    'X-Parse-Session-Token': sessionToken,
  });
const rename = (id: string, title: string, key: KeyName) =>
  call('update_object', { class_name: 'Post', object_id: id, fields: { title } }, key);
const OPERATOR = { 'X-MCP-API-Key': 'key-of-operator' };

async function ask(path: string, body?: object) {
  const response = await fetch(service.origin + path, {
    method: body ? 'POST' : 'GET',
    headers: { ...OPERATOR, ...(body && { 'Content-Type': 'application/json', 'X-Parley-Console': '1' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const preview = (target: object) => ask('/console/api/changes/undo', target);
async function undo(target: object, options: object = {}): Promise<Record<string, unknown>> {
  const { digest } = (await preview(target)).body;
  return (await ask('/console/api/changes/undo', { ...target, ...options, digest })).body;
}

/** Every row of a set that one user filled by several keys. */
async function applySet(rows: readonly (readonly [id: string, key: KeyName])[]): Promise<string> {
  for (const [id, key] of rows) await rename(id, `Wrong by ${key}`, key);
  const submitted = call('submit_changes', { title: 'a', reason: 'b' }, 'laptop');
  const id = await vi.waitUntil(
    async () => ((await ask('/approvals')).body['approvals'] as { id: string }[])[0]?.id,
    { timeout: 20_000, interval: 50 },
  );
  await decideApproval(`${service.origin}/approvals/${id}`, OPERATOR, { decision: 'approve' });
  const { data } = await submitted;
  expect(data).toMatchObject({ applied: true });
  return String(data['change_set']);
}

const titleOf = async (id: string) =>
  (await view.client.db('parley').collection<{ _id: string }>('Post').findOne({ _id: id }))?.[
    'title' as never
  ] as string | undefined;
const titles = (...ids: readonly string[]) => Promise.all(ids.map(titleOf));

describe('What one key wrote into a set of several', () => {
  it('is taken back alone, row by row, and the rest of the set later', async () => {
    const since = new Date(Date.now() - 1_000).toISOString();
    const set = await applySet([
      ['p01', 'laptop'],
      ['p02', 'ci'],
      ['p04', 'nobody'],
      ['p05', 'ci'],
      ['p05', 'laptop'],
    ]);
    const target = { agent: 'helper', key: 'ci', since };
    const { body: shown } = await preview(target);
    expect(shown).toMatchObject({ rows: { changed: 2 }, conflicts: [], unnamed_sets: 1 });
    expect(shown['entries']).toHaveLength(2);
    for (const row of [
      { object_id: 'p02', key_names: ['ci'], after: { title: 'Post 2' } },
      { object_id: 'p05', key_names: ['ci', 'laptop'], after: { title: 'Post 5' } },
    ])
      expect(shown['entries']).toContainEqual(expect.objectContaining(row));
    const args = ['changes', 'undo', '--agent', 'helper', '--key', 'ci', '--since', since, '--dry-run'];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [COMMAND, ...args, '--url', service.origin],
      { env: { ...process.env, PARLEY_API_KEY: 'key-of-operator' } },
    );
    expect(stdout).toContain('1 change set of this time has rows of which no key is known');
    expect(stdout).toMatch(/p05.*"key_names": \[ "ci", "laptop" \]/);

    const undone = await undo(target);
    expect(undone).toMatchObject({ kind: 'undo', state: 'applied', undoes: [set] });
    expect(await titles('p01', 'p02', 'p04', 'p05')).toEqual([
      'Wrong by laptop',
      'Post 2',
      'Wrong by nobody',
      'Post 5',
    ]);
    const { body: left } = await ask(`/console/api/changes/${set}`);
    expect(left).not.toHaveProperty('undone_by');
    const ofId = (id: string) =>
      (left['entries'] as { object_id: string }[]).find(({ object_id: one }) => one === id);
    expect(ofId('p02')).toMatchObject({ key_names: ['ci'], undone_by: undone['change_set'] });
    expect(ofId('p01')).not.toHaveProperty('undone_by');

    const again = await preview(target);
    expect(again.status).toBe(400);
    expect(JSON.stringify(again.body)).toContain('rows of which no key is known: 1');
    // What was taken back is no conflict of the rest.
    await view.client
      .db('parley')
      .collection<{ _id: string }>('Post')
      .updateOne({ _id: 'p02' }, { $set: { title: 'Ours' } });
    expect((await preview({ change_set: set })).body).toMatchObject({ conflicts: [], rows: { changed: 2 } });
    await undo({ ...target, key: 'laptop' });
    expect(await titles('p01', 'p02', 'p04')).toEqual(['Post 1', 'Ours', 'Wrong by nobody']);
    const last = await undo({ change_set: set });
    expect(await titles('p01', 'p02', 'p04')).toEqual(['Post 1', 'Ours', 'Post 4']);
    expect((await ask(`/console/api/changes/${set}`)).body).toMatchObject({
      undone_by: last['change_set'],
    });
    expect((await preview({ change_set: set })).status).toBe(400);
  });

  it('stays to be taken back where a conflict kept it from that', async () => {
    const since = new Date().toISOString();
    const mixed = await applySet([
      ['p06', 'ci'],
      ['p07', 'ci'],
      ['p08', 'laptop'],
    ]);
    const alone = await applySet([['p09', 'ci']]);
    const posts = view.client.db('parley').collection<{ _id: string }>('Post');
    const wrong = await posts.find({ _id: { $in: ['p06', 'p09'] } }).toArray();
    await posts.updateMany({ _id: { $in: ['p06', 'p09'] } }, { $set: { title: 'Theirs' } });
    const target = { agent: 'helper', key: 'ci', since };
    const undone = await undo(target, { skip_conflicts: true });
    expect(undone).toMatchObject({ state: 'applied', rows: { changed: 1 } });
    expect(await titles('p06', 'p07', 'p09')).toEqual(['Theirs', 'Post 7', 'Theirs']);

    const { body: left } = await ask(`/console/api/changes/${mixed}`);
    const marks = (left['entries'] as { object_id: string; undone_by?: string }[]).map(
      ({ object_id: id, undone_by: by }) => [id, by],
    );
    expect(marks).toEqual([
      ['p06', undefined],
      ['p07', undone['change_set']],
      ['p08', undefined],
    ]);
    expect((await ask(`/console/api/changes/${alone}`)).body).not.toHaveProperty('undone_by');
    expect((await preview({ change_set: mixed })).body).toMatchObject({
      rows: { changed: 1 },
      conflicts: [{ object_id: 'p06' }],
    });

    for (const { _id, ...row } of wrong) await posts.replaceOne({ _id }, row);
    expect((await preview(target)).body).toMatchObject({ rows: { changed: 2 }, conflicts: [] });
    const last = await undo(target);
    expect(await titles('p06', 'p09')).toEqual(['Post 6', 'Post 9']);
    expect((await ask(`/console/api/changes/${alone}`)).body).toMatchObject({
      undone_by: last['change_set'],
    });
    expect((await preview({ change_set: mixed })).body).toMatchObject({
      rows: { changed: 1 },
      conflicts: [],
    });
  });
});
