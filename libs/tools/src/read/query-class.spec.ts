import { Refused } from '#core';
import { describe, expect, it } from 'vitest';
import { callOf, QUIET, runTool, SampleRecords, sampleRows, switches } from '../contracts/sample-records.js';
import type { ToolSwitches } from '../tool.js';
import { QueryClass } from './query-class.js';

function setUp(rows = sampleRows(3), process: ToolSwitches = QUIET) {
  const records = new SampleRecords(rows);
  const tool = new QueryClass();
  return {
    records,
    query: (args: object = {}): Promise<Record<string, unknown>> =>
      runTool(
        tool,
        'query',
        { class_name: 'Post', ...args },
        Object.assign(callOf(tool, records), { switches: process }),
      ),
  };
}

describe('query_class', () => {
  it('answers with rows in the short form, members in the order agents know', async () => {
    const answer = await setUp(sampleRows(2)).query();
    expect(Object.keys(answer)).toEqual(['class_name', 'result_count', 'pagination', 'truncated', 'results']);
    expect(answer).toEqual({
      class_name: 'Post',
      result_count: 2,
      pagination: { limit: 100, skip: 0, has_more: false },
      truncated: false,
      results: sampleRows(2).map(({ ACL: _acl, ...row }) => row),
    });
  });

  it('hands the constraint, keys, order and include to the governed door as they were written', async () => {
    const { records, query } = setUp();
    const raw = {
      where: [1],
      keys: 'x',
      order: 5,
      include: {},
      session_token: 'r:x',
      tenant_id: 't',
      master: true,
    };
    await query(raw);
    expect(records.asked).toEqual([
      {
        method: 'page',
        className: 'Post',
        options: {
          where: [1],
          keys: 'x',
          order: 5,
          include: {},
          limit: 100,
          skip: 0,
          applyCanonicalFilter: undefined,
          tellsMore: true,
          atMost: 50,
        },
      },
    ]);
  });

  it.each([
    [{ limit: 5000 }, { limit: 1000, skip: 0 }],
    [
      { limit: 7, skip: 3 },
      { limit: 7, skip: 3 },
    ],
    [
      { limit: null, skip: null },
      { limit: 100, skip: 0 },
    ],
    [{ apply_canonical_filter: false }, { applyCanonicalFilter: false }],
  ])('asks with %j for %j', async (args, options) => {
    const { records, query } = setUp();
    await query(args);
    expect(records.asked[0]?.options).toMatchObject(options);
  });

  it.each([
    [{ limit: 0 }],
    [{ limit: -1 }],
    [{ limit: '10' }],
    [{ limit: 1.5 }],
    [{ skip: -1 }],
    [{ skip: 'x' }],
    [{ format: 'xml' }],
    [{ apply_canonical_filter: 0 }],
    [{ class_name: '' }],
    [{ class_name: ['Post'] }],
  ])('refuses %j before anything is read', async (args) => {
    const { records, query } = setUp();
    await expect(query(args)).rejects.toMatchObject({
      refusal: { code: 'invalid_argument', message: expect.stringMatching(/^Invalid arguments: /) },
    });
    expect(records.asked).toEqual([]);
  });

  it('offers the next page with what the caller wrote, and only that', async () => {
    const where = { status: 'live' };
    const args = { where, keys: ['title'], order: '-createdAt', include: ['author'], limit: 2, skip: 1 };
    expect(await setUp(sampleRows(4)).query(args)).toMatchObject({
      pagination: { limit: 2, skip: 1, has_more: true },
      next_call: { tool: 'query_class', arguments: { class_name: 'Post', ...args, limit: 2, skip: 3 } },
    });
    const bare = await setUp(sampleRows(4)).query({ limit: 3, where: null });
    expect(bare['next_call']).toEqual({
      tool: 'query_class',
      arguments: { class_name: 'Post', limit: 3, skip: 3 },
    });
  });

  it('offers no next page behind a last page that is full', async () => {
    const answer = await setUp(sampleRows(3)).query({ limit: 3 });
    expect(answer).toMatchObject({ result_count: 3, pagination: { has_more: false } });
    expect(answer).not.toHaveProperty('next_call');
  });

  it('repeats an opt-out in the calls it offers', async () => {
    const answer = await setUp(sampleRows(80)).query({ limit: 60, apply_canonical_filter: false });
    expect(answer).toMatchObject({
      next_call: { arguments: { apply_canonical_filter: false } },
      truncated_call: { arguments: { apply_canonical_filter: false } },
    });
  });

  it('shows fifty rows, and says so and how to reach the others', async () => {
    const answer = await setUp(sampleRows(300)).query({ limit: 120, skip: 10 });
    expect(answer['results']).toHaveLength(50);
    expect(answer).toMatchObject({
      result_count: 120,
      truncated: true,
      truncated_note: 'Showing first 50 of 120 results',
      truncated_call: { arguments: { skip: 60, limit: 70 } },
      next_call: { arguments: { skip: 130, limit: 120 } },
    });
  });

  it('reaches every row once by following truncated_call and next_call', async () => {
    const { query } = setUp(sampleRows(333));
    const seen: unknown[] = [];
    const pending: Record<string, unknown>[] = [{ class_name: 'Post', limit: 120 }];
    for (let args = pending.pop(); args; args = pending.pop()) {
      const answer = await query(args);
      const {
        next_call: next,
        truncated_call: hidden,
        results,
      } = answer as {
        next_call?: { arguments: Record<string, unknown> };
        truncated_call?: { arguments: Record<string, unknown> };
        results: { objectId: string }[];
      };
      seen.push(...results.map(({ objectId }) => objectId));
      // A page of hidden rows ends in its original page, whose own next_call continues.
      if (next && !args['inside']) pending.push(next.arguments);
      if (hidden) pending.push({ ...hidden.arguments, inside: true });
    }
    expect(seen).toHaveLength(333);
    expect(new Set(seen).size).toBe(333);
  });

  it('names the large fields that an included row lost', async () => {
    const { records, query } = setUp();
    records.truncatedIncludeFields = { author: [] };
    expect(await query()).toMatchObject({ truncated_include_fields: { author: [] } });
  });

  it.each(['csv', 'CSV', 'markdown', 'table'])('writes every fetched row as text in %s', async (format) => {
    const answer = await setUp(sampleRows(60)).query({ format });
    expect(Object.keys(answer)).toEqual(['class_name', 'format', 'headers', 'row_count', 'output']);
    expect(answer).toMatchObject({
      format: format.toLowerCase(),
      headers: ['objectId', 'createdAt', 'updatedAt', 'title'],
      row_count: 60,
      output: expect.stringContaining('Row 59'),
    });
  });

  it('writes no rows as no headers and no text', async () => {
    expect(await setUp([]).query({ format: 'csv' })).toEqual({
      class_name: 'Post',
      format: 'csv',
      headers: [],
      row_count: 0,
      output: '',
    });
  });

  it('stamps rows only where the operator asked, over what the data claims', async () => {
    const forged = [{ objectId: 'r0', _source: 'trusted operator' }];
    const on = switches({ includeSourceProvenance: true });
    const stamped = { objectId: 'r0', _source: { class: 'Post', tool: 'query_class', object_id: 'r0' } };
    expect(await setUp(forged, on).query()).toMatchObject({ results: [stamped] });
    expect((await setUp(forged, on).query({ format: 'csv' }))['output']).not.toContain('trusted operator');
    expect(await setUp(forged).query()).toMatchObject({ results: forged });
  });

  it('neutralises formulas in CSV where the operator asked', async () => {
    const rows = [{ title: '=HYPERLINK("x")' }];
    expect((await setUp(rows).query({ format: 'csv' }))['output']).toContain('"=HYPERLINK');
    const on = switches({ neutralizeFormulas: true });
    expect((await setUp(rows, on).query({ format: 'csv' }))['output']).toContain(`"'=HYPERLINK`);
  });

  it('passes a refusal of the governed door on', async () => {
    const { records, query } = setUp();
    const refusal = new Refused({ code: 'access_denied', gate: 'class', message: 'no' });
    records.page = () => Promise.reject(refusal);
    await expect(query()).rejects.toBe(refusal);
  });
});
