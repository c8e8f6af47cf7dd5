import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DatabaseView } from '../../support/database-dump.js';
import { servePosts } from '../../support/posts-service.js';
import { callTool, type Service, WRITES_OPEN } from '../../support/service.js';

const free = { rateLimit: 1_000_000 };
const AGENTS = {
  helper: { ...free, permissions: 'admin', tenantId: 'acme' },
  colleague: { ...free, permissions: 'admin', tenantId: 'acme' },
  support: { ...free, permissions: 'admin', tenantId: 'acme', writes: 'proposed' },
  operator: { ...free, permissions: 'admin', tenantId: 'acme' },
  reading: { ...free, tenantId: 'acme' },
  narrow: { ...free, permissions: 'admin', tenantId: 'acme', classes: { only: ['Author'] } },
  foreign: { ...free, permissions: 'admin', tenantId: 'globex' },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName | 'leaked') => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const COMMAND = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));

let view: DatabaseView;
let service: Service;

beforeAll(async () => {
  ({ service, view } = await servePosts(
    AGENTS,
    {
      auth: [
        ...Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
        { apiKey: 'key-of-leaked', agent: 'helper', name: 'helper-ci' },
      ],
      console: { operators: ['operator', 'reading', 'narrow', 'foreign'] },
      changes: { record: 'all' },
    },
    { ...WRITES_OPEN, PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true' },
  ));
}, 90_000);

const posts = () => view.client.db('parley').collection<{ _id: string; title: string }>('Post');
const dump = async () => JSON.stringify(await posts().find({}).sort({ _id: 1 }).toArray());
const call = (name: string, args: object, agent: AgentName | 'leaked') =>
  callTool(service, name, args, as(agent));
const rename = (id: string, title: string, agent: AgentName | 'leaked' = 'helper') =>
  call('update_object', { class_name: 'Post', object_id: id, fields: { title } }, agent);

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function ask(path: string, agent: AgentName, body?: object): Promise<Answer> {
  const response = await fetch(`${service.origin}/console/api/changes${path}`, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...as(agent),
      ...(body && { 'Content-Type': 'application/json', 'X-Parley-Console': '1' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const undo = (body: object, agent: AgentName = 'operator') => ask('/undo', agent, body);
const run = (...args: readonly string[]) =>
  promisify(execFile)(process.execPath, [COMMAND, 'changes', ...args, '--url', service.origin], {
    env: { ...process.env, PARLEY_API_KEY: 'key-of-operator' },
  });

describe('What an agent wrote within a time', () => {
  let since: string;
  let before: string;
  beforeEach(async () => {
    before = await dump();
    // The service goes on by the clock that its machine had at its start. What was written before is taken back already.
    since = new Date(Date.now() - 1_000).toISOString();
    await rename('p00', 'Wrong');
    await rename('p00', 'Wrong again');
    await rename('p03', 'Wrong');
    await call('create_object', { class_name: 'Post', fields: { title: 'Made wrongly' } }, 'helper');
  });

  it('is taken back by an operator, after its preview, row by row', async () => {
    const target = { agent: 'helper', since };
    const { body: preview } = await undo(target);
    expect(preview).toMatchObject({ rows: { created: 0, changed: 2, deleted: 1 }, conflicts: [] });
    expect(preview['change_sets']).toHaveLength(4);
    expect(preview['entries']).toContainEqual(
      expect.objectContaining({
        object_id: 'p00',
        before: { title: 'Wrong again' },
        after: { title: 'Post 0' },
      }),
    );
    expect(await dump()).not.toBe(before);
    const { status, body: undone } = await undo({ ...target, digest: preview['digest'] });
    expect({ status, undone }).toMatchObject({ status: 200, undone: { state: 'applied', kind: 'undo' } });
    expect(await dump()).toBe(before);
    const { status: again, body } = await undo(target);
    expect({ again, said: body['error'] ?? body['message'] }).toMatchObject({
      again: 400,
      said: expect.stringContaining('wrote nothing in this time') as string,
    });
  });

  it('is taken back without the rows that somebody has changed since, by an explicit choice', async () => {
    await rename('p03', 'Right', 'colleague');
    const target = { agent: 'helper', since };
    const { body: preview } = await undo(target);
    expect(preview['conflicts']).toMatchObject([
      { class_name: 'Post', object_id: 'p03', conflict: 'somebody has changed this row since' },
    ]);
    const { digest } = preview;
    expect((await undo({ ...target, digest })).status).toBe(409);
    expect((await undo({ ...target, digest, skip_conflicts: true })).status).toBe(200);
    expect((await posts().findOne({ _id: 'p00' }))?.title).toBe('Post 0');
    expect((await posts().findOne({ _id: 'p03' }))?.title).toBe('Right');
    await posts().updateOne({ _id: 'p03' }, { $set: { title: 'Post 3' } });
  });

  it('is taken back for one of its keys, and what the others wrote stays', async () => {
    await rename('p03', 'Stolen', 'leaked');
    await rename('p06', 'Stolen', 'leaked');
    await rename('p06', 'Honest');
    const { body: listed } = await ask(`?key=helper-ci&since=${since}`, 'operator');
    expect(listed['change_sets']).toMatchObject([{ key_names: ['helper-ci'] }, { key_names: ['helper-ci'] }]);
    const target = { agent: 'helper', key: 'helper-ci', since };
    const { body: preview } = await undo(target);
    expect(preview).toMatchObject({
      conflicts: [{ object_id: 'p06', conflict: 'somebody has changed this row since' }],
      entries: [{ object_id: 'p03', before: { title: 'Stolen' }, after: { title: 'Wrong' } }],
    });
    const narrowed = ['--agent', 'helper', '--key', 'helper-ci', '--since', since];
    const { stdout } = await run('undo', ...narrowed, '--skip-conflicts');
    expect(stdout).toContain('Taken back by change set');
    expect((await posts().findOne({ _id: 'p03' }))?.title).toBe('Wrong');
    expect((await posts().findOne({ _id: 'p06' }))?.title).toBe('Honest');
    expect((await posts().findOne({ _id: 'p00' }))?.title).toBe('Wrong again');
    expect((await undo({ ...target, key: 'helper' })).status).toBe(400);
    await undo({ agent: 'helper', since, digest: (await undo({ agent: 'helper', since })).body['digest'] });
    await posts().updateOne({ _id: 'p06' }, { $set: { title: 'Post 6' } });
  });

  it('is taken back only as it was shown', async () => {
    const target = { agent: 'helper', since, until: new Date(Date.now() + 60_000).toISOString() };
    const { body: preview } = await undo(target);
    await rename('p00', 'Wrong at last');
    expect((await undo({ ...target, digest: preview['digest'] })).status).toBe(412);
    const { body: now } = await undo(target);
    expect((await undo({ ...target, digest: now['digest'] })).status).toBe(200);
    expect((await posts().findOne({ _id: 'p00' }))?.title).toBe('Post 0');
  });

  it('is not taken back by an operator that may not write it, or not see it', async () => {
    const target = { agent: 'helper', since };
    const refused = await undo(target, 'reading');
    expect(refused.status).toBe(403);
    const foreign = await undo(target, 'foreign');
    expect(foreign.status).toBe(400);
    const narrow = await undo(target, 'narrow');
    expect(JSON.stringify([refused, foreign, narrow])).not.toMatch(/Wrong|Post 0|p00|"Post"/);
    expect(narrow.body['entries'] ?? []).toEqual([]);
    const [first] = (await ask(`?agent=helper&since=${since}`, 'operator')).body['change_sets'] as {
      change_set: string;
    }[];
    expect((await ask(`/${first?.change_set}`, 'foreign')).status).toBe(400);
    expect(JSON.stringify(await ask(`/${first?.change_set}`, 'narrow'))).not.toMatch(/Made wrongly/);
    expect(JSON.stringify(await ask(`/${first?.change_set}`, 'operator'))).toMatch(/Made wrongly/);
    const { body: now } = await undo(target);
    await undo({ ...target, digest: now['digest'] });
    expect(await dump()).toBe(before);
  });

  it('is listed, shown and taken back on the command line', async () => {
    expect((await run('list', '--agent', 'helper', '--since', since)).stdout).toMatch(/helper +applied/);
    const dry = await run('undo', '--agent', 'helper', '--since', since, '--dry-run');
    expect(dry.stdout).toContain('4 change sets would be taken back: 2 changed, 1 deleted.');
    expect(await dump()).not.toBe(before);
    const { stdout } = await run('undo', '--agent', 'helper', '--since', since);
    expect(stdout).toContain('Taken back by change set');
    expect(await dump()).toBe(before);
    const [, set = ''] = /set (\S+)\./.exec(stdout) ?? [];
    expect((await run('show', set)).stdout).toContain('"kind": "undo"');
    await expect(run('undo', '--agent', 'helper')).rejects.toThrow('--agent and --since');
  });
});

describe('The exit code', () => {
  const codeOf = (args: readonly string[], key: string | undefined = 'key-of-operator') =>
    promisify(execFile)(process.execPath, [COMMAND, 'changes', ...args, '--url', service.origin], {
      env: { ...process.env, PARLEY_API_KEY: key },
    }).then(
      () => 0,
      ({ code }: { code: number }) => code,
    );

  it.each<[number, string[], string?]>([
    [0, ['list', '--json']],
    [1, ['list'], 'key of nobody'],
    [1, ['list', '--state', 'lost']],
    [2, ['list', '--since', 'yesterday']],
    [2, ['list', '--since', '2025-01-01T10:00']],
    [1, ['approve', 'nothing', '--digest', 'none']],
    [1, ['show', 'nothing']],
    [2, ['show']],
    [1, ['discard', 'nothing']],
    [2, ['discard']],
    [1, ['undo', 'nothing']],
    [2, ['undo']],
    [2, ['undo', 'nothing', '--agent', 'helper', '--since', '2025-01-01']],
  ])('%i is that of %j', async (code, args, key) => {
    expect(await codeOf(args, key)).toBe(code);
  });
});

describe('A body of the route that takes back', () => {
  it.each([
    {},
    { agent: 'helper' },
    { change_set: 'x', agent: 'helper' },
    { agent: 'helper', since: 'yesterday' },
    { agent: 'helper', since: '2025-01-01T00:00:00Z', untill: '2025-01-01T00:00:01Z' },
    { agent: 'helper', since: '2025-W01' },
    { agent: 'helper', since: '2025-01-01T10:00' },
    { agent: 'helper', since: null },
    { agent: 'helper', since: '2025-01-01T00:00:00Z', until: '2025-123' },
    { change_set: { $ne: 1 } },
    { change_set: 'x', skip_conflicts: 'yes', digest: 'd' },
  ])('is refused: %j', async (body) => {
    expect((await undo(body)).status).toBe(400);
  });
});

it('A set whose values are deleted names its rows to those operators alone who may read them', async () => {
  const { data } = (await rename('p00', 'Later', 'support')) as unknown as { data: { change_set: string } };
  const made = { class_name: 'Post', fields: { title: 'Made later' } };
  await call('create_object', made, 'support');
  await run('discard', data.change_set);
  const seen = await ask(`/${data.change_set}`, 'narrow');
  expect(seen.body['entries']).toHaveLength(2);
  expect(JSON.stringify(seen)).not.toMatch(/"Post"|p00/);
  expect((await ask(`/${data.change_set}`, 'operator')).body['entries']).toMatchObject([
    { class_name: 'Post', object_id: 'p00' },
    { class_name: 'Post', operation: 'create' },
  ]);
});

it('A set that waits is discarded by an operator, and nothing of it happens', async () => {
  const before = await dump();
  const { data } = (await rename('p00', 'Later', 'support')) as unknown as { data: { change_set: string } };
  // Who only reads drops nobody's work.
  expect((await ask(`/${data.change_set}/discard`, 'reading', {})).status).toBe(403);
  expect((await ask(`/${data.change_set}/discard`, 'foreign', {})).status).toBe(400);
  expect((await run('discard', data.change_set)).stdout).toContain('"state": "discarded"');
  expect(await dump()).toBe(before);
});
