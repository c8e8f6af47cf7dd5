import { describe, expect, it } from 'vitest';
import { refusals } from '#core';
import {
  type AskedRequest,
  kernelUnderTest,
  MODERN,
  NOVEMBER,
  readResult,
  smallAgent,
  SmallRecords,
  smallTool,
  SmallToolRunner,
  succeeded,
} from '../contracts/kernel-under-test.js';
import { parseResourceUri } from './resource-methods.js';

const { ask } = kernelUnderTest();
const read = (uri: unknown, context?: AskedRequest) => ask('resources/read', { uri }, context);
const uris = async (context?: AskedRequest) =>
  (readResult(await ask('resources/list', {}, context)).resources as { uri: string }[]).map(({ uri }) => uri);

describe('resources/list', () => {
  it('offers three kinds of each class, custom classes first', async () => {
    expect(await uris()).toEqual([
      'parse://Post/schema',
      'parse://Post/count',
      'parse://Post/samples',
      'parse://_User/schema',
      'parse://_User/count',
      'parse://_User/samples',
    ]);
  });

  it('describes a class by its own description, or by its type', async () => {
    const { resources } = readResult(await ask('resources/list')) as { resources: Record<string, string>[] };
    expect(resources[0]).toEqual({
      uri: 'parse://Post/schema',
      name: 'Post schema',
      description: 'Fields of Post and their types. <schema_description>Articles</schema_description>',
      mimeType: 'application/json',
    });
    expect(resources[3]?.description).toBe('Fields of _User and their types. Class of Parse');
  });

  it('is empty for an agent that may not list classes', async () => {
    expect(await uris({ agent: smallAgent({ tools: ['count_objects'] }) })).toEqual([]);
  });

  it.each([
    ['a limit', refusals.rateLimited(60, 60, 2)],
    ['the audit', refusals.auditUnavailable(1)],
    ['the database', refusals.parseError('the database cannot be reached')],
    ['time', refusals.toolTimedOut('get_all_schemas', 30, 'other')],
  ])('is an error, as a read is, and never empty where %s refused a tool behind it', async (_, refusal) => {
    for (const name of ['get_all_schemas', 'list_changes']) {
      const under = kernelUnderTest();
      under.tools.add(smallTool(name), () => ({ ok: false, refusal }));
      expect(await under.ask('resources/list')).toEqual({
        error: { code: -32603, message: refusal.message },
        status: 200,
      });
    }
  });

  it('offers only kinds whose tool the agent may call', async () => {
    const agent = smallAgent({ tools: { except: ['get_sample_objects', 'get_schema'] } });
    expect(await uris({ agent })).toEqual(['parse://Post/count', 'parse://_User/count']);
  });

  it.each([
    ['get', []],
    ['count', ['count']],
    ['find', ['samples']],
  ] as const)(
    'offers of a class that is open to %s alone only what reading it answers',
    async (reads, kinds) => {
      const records = new SmallRecords({ Post: { fields: {}, reads: [reads] } });
      const { resources } = readResult(
        await kernelUnderTest(undefined, undefined, { records }).ask('resources/list'),
      );
      expect(
        (resources as { uri: string }[]).map(({ uri }) => uri).filter((uri) => uri.includes('Post')),
      ).toEqual(['parse://Post/schema', ...kinds.map((kind) => `parse://Post/${kind}`)]);
    },
  );

  it('drops names that no class can have', async () => {
    const tools = new SmallToolRunner()
      .add(smallTool('get_all_schemas'), () =>
        succeeded({ custom: [{ name: 'a/b' }, { name: 5 }, null], built_in: 'x' }),
      )
      .add(smallTool('get_schema'), () => succeeded({}));
    expect(readResult(await kernelUnderTest(tools).ask('resources/list')).resources).toEqual([]);
  });

  it('pages through a large database from 2025-11-25 on', async () => {
    const custom = Array.from({ length: 150 }, (_, at) => ({ name: `C${at}`, fields: 1 }));
    const tools = new SmallToolRunner()
      .add(smallTool('get_all_schemas'), () => succeeded({ custom, built_in: [] }))
      .add(smallTool('get_schema'), () => succeeded({}))
      .add(smallTool('count_objects'), () => succeeded({}));
    const records = new SmallRecords(Object.fromEntries(custom.map(({ name }) => [name, { fields: {} }])));
    const { ask: askMany } = kernelUnderTest(tools, undefined, { records });
    const first = readResult(await askMany('resources/list', {}, NOVEMBER));
    expect(first.resources).toHaveLength(200);
    const second = readResult(await askMany('resources/list', { cursor: first.nextCursor }, NOVEMBER));
    expect(second.resources).toHaveLength(100);
    expect(second).not.toHaveProperty('nextCursor');
    expect(readResult(await askMany('resources/list')).resources).toHaveLength(300);
  });
});

describe('resources/templates/list', () => {
  it('lists the four templates without asking the agent', async () => {
    const { tools, ask: askOne } = kernelUnderTest();
    const { resourceTemplates } = readResult(await askOne('resources/templates/list')) as {
      resourceTemplates: { uriTemplate: string; name: string; mimeType: string }[];
    };
    expect(resourceTemplates.map(({ uriTemplate, name }) => [uriTemplate, name])).toEqual([
      ['parse://{className}/schema', 'Parse class schema'],
      ['parse://{className}/count', 'Parse class object count'],
      ['parse://{className}/samples', 'Parse class sample objects'],
      ['parse://changes/{change_set}', 'Change set'],
    ]);
    expect(tools.calls).toEqual([]);
  });
});

describe('resources/read', () => {
  it.each([
    ['parse://Post', 'get_schema', { class_name: 'Post' }],
    ['parse://Post/schema', 'get_schema', { class_name: 'Post' }],
    ['parse://_User/count', 'count_objects', { class_name: '_User' }],
    ['parse://Post/samples', 'get_sample_objects', { class_name: 'Post', limit: 5 }],
  ])('reads %s with %s', async (uri, name, args) => {
    const { tools, ask: askOne } = kernelUnderTest();
    const { contents } = readResult(await askOne('resources/read', { uri })) as {
      contents: { text: string }[];
    };
    expect(tools.calls).toEqual([{ name, args }]);
    expect(contents).toEqual([
      { uri, mimeType: 'application/json', text: expect.stringContaining('class_name') },
    ]);
  });

  it.each([
    'parse://Post/Schema',
    'PARSE://Post/schema',
    'parse://Post/',
    'parse://Post/schema/',
    'parse://Post/schema\n',
    'parse://1Post/schema',
    'parse://Po st',
    'file:///etc/passwd',
    '',
  ])('refuses the address %j', async (uri) => {
    expect(await read(uri)).toEqual({
      error: { code: -32602, message: `Invalid resource URI: ${uri}` },
      status: 200,
    });
    expect(await read(uri, NOVEMBER)).toMatchObject({ error: { code: -32002, data: { uri } } });
    expect(await read(uri, MODERN)).toMatchObject({ error: { code: -32602, data: { uri } }, status: 200 });
  });

  it('needs an address', async () => {
    expect(await read(undefined)).toMatchObject({ error: { code: -32602 } });
    expect(await read({})).toMatchObject({ error: { code: -32602 } });
  });

  it.each([['2024-11-05'], ['2025-03-26'], ['2025-06-18'], ['2025-11-25'], ['2026-07-28']])(
    'answers a class that the agent may not know as not found in %s',
    async (version) => {
      const modern = version === '2026-07-28';
      const uri = 'parse://Secret/schema';
      expect(await read(uri, { era: modern ? 'modern' : 'legacy', version })).toEqual({
        error: { code: modern ? -32602 : -32002, message: 'Resource not found', data: { uri } },
        status: 200,
      });
    },
  );

  it('says in the stateless era that nobody else may keep it', async () => {
    expect(readResult(await read('parse://Post', MODERN))).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
  });
});

it('reads an address without a kind as the schema', () => {
  expect(parseResourceUri('parse://A_1')).toEqual({ className: 'A_1', kind: 'schema' });
});
