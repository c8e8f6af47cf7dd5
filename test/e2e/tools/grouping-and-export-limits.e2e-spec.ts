import { beforeAll, describe, expect, it } from 'vitest';
import { as, GROUPING, NOTES_SEED, notesConfig, TOOLS } from '../../fixtures/notes.fixture.js';
import { SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, type Service, startService, type ToolAnswer } from '../../support/service.js';

let service: Service;
beforeAll(async () => {
  service = await startService({ seed: NOTES_SEED, config: notesConfig() });
});

const call = (tool: string, args: object, headers = {}) =>
  callTool(service, tool, { class_name: 'Post', ...args }, headers);

describe('what may not be read', () => {
  it.each(TOOLS)('is no class for %s: hidden, filtered or scoped without a tenant', async (tool, args) => {
    const hidden = await call(tool, { class_name: 'Contract', ...args });
    expect(hidden).toMatchObject({ isError: true, code: 'access_denied', details: { kind: 'hidden_class' } });
    const filtered = await call(tool, args, as('authorsOnly'));
    expect(filtered).toMatchObject({
      isError: true,
      code: 'access_denied',
      details: { kind: 'class_filter' },
    });
    const scoped = await call(tool, args, as('stateless'));
    expect(scoped).toMatchObject({ isError: true, code: 'access_denied', details: { kind: 'tenant_scope' } });
  });

  it.each(TOOLS)('is spoken of by the class gate of %s before any argument', async (tool) => {
    const answer = await call(tool, {
      class_name: 'Contract',
      field: 5,
      limit: 'x',
      columns: 7,
      interval: {},
      format: 1,
    });
    expect(answer).toMatchObject({ code: 'access_denied', details: { kind: 'hidden_class' } });
  });

  it.each(GROUPING)('is no field for %s, and the refusal says which are', async (tool, args) => {
    for (const [given, refused, kind] of [
      [{ field: 'internalNote' }, 'internalNote', 'field_denied'],
      [{ field: 'internal_note' }, 'internal_note', 'field_denied'],
      [{ field: '_p_secretary' }, '_p_secretary', 'storage_form_field_ref'],
      [{ where: { internalNote: SECRET } }, 'internalNote', 'field_denied'],
      ...(tool === 'distinct'
        ? []
        : ([[{ operation: 'max', value_field: 'internalNote' }, 'internalNote', 'field_denied']] as const)),
    ] as const) {
      const answer = await call(tool, { ...args, ...given });
      expect(answer).toMatchObject({
        isError: true,
        code: 'access_denied',
        details: { kind, denied_field: refused },
      });
      expect(answer.details?.['allowed_fields']).toContain('title');
    }
  });

  it('is no class of a pointer either: its groups are counted and not named', async () => {
    /** What a query shows in the place of the pointer. */
    const placeholder = async (field: string, headers?: Record<string, string>) => {
      const [row] = (await call('query_class', { limit: 1 }, headers)).data['results'] as object[];
      return (row as Record<string, unknown>)[field];
    };
    const contract = await placeholder('contract');
    expect(contract).toEqual({ className: 'Contract', __redacted: true });
    const grouped = await call('group_by', { field: 'contract' });
    expect(grouped.data['groups']).toEqual([{ key: contract, value: 60 }]);
    expect(grouped.data).not.toHaveProperty('pointer_class');
    const values = await call('distinct', { field: 'contract' });
    expect(values.data).toMatchObject({ count: 1, values: [contract] });
    const filtered = await call('group_by', { field: 'author' }, as('noAuthors'));
    const author = await placeholder('author', as('noAuthors'));
    expect(filtered.data['groups']).toEqual([{ key: author, value: 60 }]);
    const mixed = await callTool(service, 'group_by', {
      class_name: 'Note',
      field: 'links',
      flatten_arrays: true,
      sort: 'value_desc',
    });
    expect(mixed.data['groups']).toEqual([
      { key: 'Author$a1', value: 2 },
      { key: contract, value: 1 },
    ]);
    for (const { data } of [grouped, values, mixed])
      expect(JSON.stringify(data).replaceAll(JSON.stringify(contract), '')).not.toMatch(/Contract|c1"/);
    expect(JSON.stringify(filtered.data).replaceAll(JSON.stringify(author), '')).not.toMatch(/Author|a1"/);
    for (const answer of [grouped, values, mixed]) expect(answer.wire).not.toContain('c1"');
    expect(filtered.wire).not.toContain('a1"');
  });

  it('is no row: filters of tenant, agent and class hold on every path, whatever is asked', async () => {
    const optOut = { tenant_id: 'globex', where: { likes: { $gte: 50 } } };
    const likes = Array.from({ length: 10 }, (_, index) => 50 + index);
    expect((await call('distinct', { field: 'likes', sort: 'asc', ...optOut })).data['values']).toEqual(
      likes,
    );
    const live = likes.filter((count) => count % 3 !== 0);
    expect(
      (await call('distinct', { field: 'likes', sort: 'asc', ...optOut }, as('liveOnly'))).data['values'],
    ).toEqual(live);
    const exported = await call(
      'export_data',
      { columns: ['likes'], order: 'likes', ...optOut },
      as('liveOnly'),
    );
    expect(exported.data['output']).toBe(`likes\n${live.join('\n')}\n`);
    const piped = await call('export_data', { pipeline: [{ $count: 'n' }] }, as('liveOnly'));
    expect(piped.data['output']).toBe('n\n40\n');
    const dated = await call(
      'group_by_date',
      { field: 'createdAt', interval: 'year', ...optOut },
      as('liveOnly'),
    );
    expect(dated.data['groups']).toEqual([{ key: '2025', value: live.length }]);
  });

  it.each<[string, () => Promise<ToolAnswer>]>([
    ['an export of everything', () => call('export_data', { limit: 1000 })],
    ['an export with every key', () => call('export_data', { keys: ['internalNote', 'title'] })],
    [
      'an export with an include',
      () => call('export_data', { include: ['author'], columns: ['author.ssn', 'author', 'contract'] }),
    ],
    [
      'an export of a hidden include',
      () => call('export_data', { include: ['contract'], columns: ['contract.clause'] }),
    ],
    ['an export in an order', () => call('export_data', { order: 'internalNote' })],
    ['an export of a pipeline', () => call('export_data', { pipeline: [{ $project: { title: 0 } }] })],
    [
      'an export of $$ROOT',
      () => call('export_data', { pipeline: [{ $group: { _id: null, all: { $push: '$$ROOT' } } }] }),
    ],
    [
      'an export of a join',
      () =>
        call('export_data', {
          pipeline: [
            { $lookup: { from: 'Author', localField: 'author', foreignField: 'objectId', as: 'a' } },
          ],
        }),
    ],
    ['an export of a union', () => call('export_data', { pipeline: [{ $unionWith: 'Contract' }] })],
    ['an export of users', () => callTool(service, 'export_data', { class_name: '_User' })],
    ['an export of sessions', () => callTool(service, 'export_data', { class_name: '_Session' })],
    [
      'an export of an internal column',
      () => callTool(service, 'export_data', { class_name: '_User', columns: ['_hashed_password'] }),
    ],
    [
      'groups of passwords',
      () => callTool(service, 'group_by', { class_name: '_User', field: '_hashed_password' }),
    ],
    ['groups of tokens', () => callTool(service, 'group_by', { class_name: '_User', field: 'sessionToken' })],
    [
      'greatest hidden values',
      () => call('group_by', { field: 'status', operation: 'max', value_field: 'internalNote' }),
    ],
    ['titles', () => call('distinct', { field: 'title', limit: 5000 })],
    [
      'a filter on a hidden value',
      () => call('group_by', { field: 'status', where: { internalNote: { $regex: '^S' } } }),
    ],
    ['a plan for a hidden value', () => call('explain_query', { where: { internalNote: { $regex: '^S' } } })],
    [
      'a plan for a hidden class',
      () =>
        call('explain_query', { where: { contract: { $inQuery: { className: 'Contract', where: {} } } } }),
    ],
  ])('never shows in %s', async (_, probe) => {
    const answer = await probe();
    expect(answer.wire).not.toContain(SECRET);
    expect(answer.wire).not.toMatch(/globex|foreign"|_rperm"|\$2[aby]\$/);
  });
});

describe('listing and calling agree', () => {
  it('that these tools are there', async () => {
    const { body } = await rpc(service, 'tools/list');
    const listed = (body['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name);
    for (const [tool, args] of TOOLS) {
      expect(listed).toContain(tool);
      expect((await call(tool, args)).isError).toBe(false);
    }
  });

  it('that a lean agent has none of them', async () => {
    const { text } = await rpc(service, 'tools/list', {}, as('lean'));
    for (const [tool, args] of TOOLS) {
      expect(text).not.toContain(`"${tool}"`);
      expect(await call(tool, args, as('lean'))).toMatchObject({ isError: true, code: 'tool_filtered' });
    }
  });
});
