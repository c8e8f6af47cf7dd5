import type { Refusal } from '#core';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FittedResult, fitToSize } from './fit-to-size.js';
import { MAX_RESULT_BYTES } from './presented-rows.js';

interface Envelope {
  readonly results: Record<string, unknown>[];
  readonly objects: Record<string, unknown>;
  readonly _truncated: Record<string, unknown>;
}

function toFitted(
  tool: string,
  data: unknown,
  cap: number,
  pretty = false,
): FittedResult & { readonly data: Envelope } {
  const args = { class_name: 'Post', where: { a: 1 }, skip: 5, session_token: 'r:1' };
  const inputSchema = { properties: { class_name: {}, where: {}, skip: {} } };
  const answer = fitToSize(tool, data, { cap, pretty, args, inputSchema });
  if ('code' in answer) throw new Error(answer.message);
  return answer as FittedResult & { readonly data: Envelope };
}

function refused(tool: string, data: unknown, cap: number, takes = ['keys', 'limit']): Refusal {
  const properties = Object.fromEntries(takes.map((name) => [name, {}]));
  const answer = fitToSize(tool, data, { cap, inputSchema: { properties } });
  if ('text' in answer) throw new Error('fits');
  return answer;
}

const row = (index: number, body: string, more: object = {}) => ({
  objectId: `r${index}`,
  createdAt: '2024-01-01T00:00:00.000Z',
  updatedAt: '2024-01-01T00:00:00.000Z',
  title: `Row ${index}`,
  body,
  ...more,
});
const rows = (count: number, bytes: number, more: object = {}) =>
  Array.from({ length: count }, (_, index) => row(index, 'x'.repeat(bytes), more));

const page = (results: object[], skip = 0) => ({
  class_name: 'Post',
  result_count: 100,
  pagination: { limit: 100, skip, has_more: true },
  truncated: true,
  truncated_note: 'Showing first 50 of 100 results',
  next_call: { tool: 'query_class', arguments: {} },
  truncated_call: { tool: 'query_class', arguments: { skip: skip + 50 } },
  results,
});

describe('a result within the cap', () => {
  it('travels as it is, as compact JSON', () => {
    const data = { count: 1 };
    expect(fitToSize('count_objects', data)).toEqual({ data, text: '{"count":1}', structured: true });
  });

  it('travels indented under prettyText', () => {
    const data = { count: 1 };
    const text = '{\n  "count": 1\n}';
    expect(fitToSize('count_objects', data, { pretty: true })).toEqual({ data, text, structured: true });
  });

  it.each([[[1, 2]], ['text'], [null], [undefined]])('is structured only as an object: %j is not', (data) => {
    expect(fitToSize('custom', data)).toMatchObject({ structured: false });
  });

  it('may have 4 MiB of bytes, not of characters', () => {
    const overhead = '""'.length;
    const fits = 'é'.repeat((MAX_RESULT_BYTES - overhead) / 2);
    expect(fitToSize('custom', fits)).toMatchObject({ data: fits });
    expect(refused('custom', `${fits}a`, MAX_RESULT_BYTES).message).toContain(
      `Tool result exceeded 4194304 bytes (${MAX_RESULT_BYTES + 1}).`,
    );
  });
});

describe('an oversized answer to a write', () => {
  const row = { objectId: 'p1', title: 'New', body: 'x'.repeat(3_000), notes: 'y'.repeat(2_000) };

  it.each([
    ['create_object', { object: row }],
    ['update_object', { object: row }],
    ['update_object', { proposed: true, before: row, after: { ...row, title: 'Newer' } }],
    ['delete_object', { proposed: true, before: row }],
  ])('is no refusal, which would be repeated: %s', (tool, shown) => {
    const { data, text } = toFitted(tool, { class_name: 'Post', object_id: 'p1', ...shown }, 1_000);
    expect(text.length).toBeLessThanOrEqual(1_000);
    const small = { objectId: 'p1', title: expect.any(String) as string };
    expect(data).toEqual({
      class_name: 'Post',
      object_id: 'p1',
      ...shown,
      ...Object.fromEntries(
        Object.keys(shown)
          .filter((name) => name !== 'proposed')
          .map((name) => [name, small]),
      ),
      _truncated: {
        reason: 'response_exceeded_max_bytes',
        dropped_fields: ['body', 'notes'],
        hint: expect.stringContaining('do not repeat it') as string,
      },
    });
  });
});

describe('oversized query_class rows', () => {
  it('give up their heaviest field first, and the members that no longer hold', () => {
    const { data } = toFitted('query_class', page(rows(5, 2_000)), 4_000);
    expect(data).toEqual({
      class_name: 'Post',
      pagination: { limit: 100, skip: 0, has_more: true },
      next_call: { tool: 'query_class', arguments: {} },
      truncated_call: { tool: 'query_class', arguments: { skip: 50 } },
      results: rows(5, 0).map((each) => expect.not.objectContaining({ body: each.body })),
      _truncated: {
        reason: 'response_exceeded_max_bytes',
        dropped_fields: ['body'],
        kept_count: 5,
        original_count: 5,
        hint: expect.stringContaining("'body'"),
      },
    });
    expect(data._truncated['hint']).toContain('get_object');
  });

  it('give up their last rows when that is not enough, and say where to continue', () => {
    const { data, text, structured } = toFitted(
      'query_class',
      page(rows(50, 500, { teaser: 'y'.repeat(200) }), 100),
      6_000,
    );
    const kept = data.results.length;
    expect(kept).toBeGreaterThan(5);
    expect(data._truncated).toMatchObject({ kept_count: kept, original_count: 50 });
    expect(data).toMatchObject({
      next_call: {
        tool: 'query_class',
        arguments: { class_name: 'Post', where: { a: 1 }, skip: 100 + kept },
      },
    });
    expect(text).not.toContain('session_token');
    expect(data).not.toHaveProperty('truncated_call');
    expect(JSON.parse(text)).toEqual(data);
    expect(structured).toBe(true);
  });

  it('are more in compact text than in indented text of the same size', () => {
    const kept = [false, true].map((pretty) => {
      const { data, text } = toFitted('query_class', page(rows(50, 50)), 4_000, pretty);
      expect(Buffer.byteLength(text)).toBeGreaterThan(3_300);
      return data.results.length;
    });
    expect(kept[0]).toBeGreaterThan(kept[1] as number);
  });

  it('keep who they are, even when that is the heaviest part', () => {
    const heavyIds = rows(20, 0, { objectId: 'i'.repeat(300), createdAt: 'c'.repeat(200) });
    const { data } = toFitted('query_class', page(heavyIds), 6_000);
    expect(data.results.length).toBeGreaterThan(0);
    expect(data.results[0]).toMatchObject({ objectId: 'i'.repeat(300), createdAt: 'c'.repeat(200) });
  });

  it('keep their provenance', () => {
    const _source = { class: 'Post', tool: 'query_class', object_id: 'o'.repeat(300) };
    const { data } = toFitted('query_class', page(rows(20, 5, { _source })), 6_000);
    expect(data.results[0]).toMatchObject({ _source });
  });

  it('are found quickly when the first rows are light and the last ones heavy', () => {
    const late = [...rows(5, 1), ...rows(3_000, 2_000, { more: 'z'.repeat(1_000) })];
    const { data } = toFitted('query_class', page(late), 100_000);
    expect(data._truncated['kept_count']).toBe(data.results.length);
  });
});

describe('oversized get_objects', () => {
  const byId = (list: ReturnType<typeof rows>) => ({
    class_name: 'Post',
    objects: Object.fromEntries(list.map((each) => [each.objectId, each])),
    missing: ['zz'],
    requested: list.length + 1,
    found: list.length,
  });

  it('name the ids that did not fit and leave the counts alone', () => {
    const { data } = toFitted('get_objects', byId(rows(30, 400, { teaser: 'y'.repeat(200) })), 4_000);
    const kept = Object.keys(data.objects);
    expect(data).toMatchObject({ missing: ['zz'], requested: 31, found: 30 });
    expect(data._truncated['dropped_for_size']).toEqual(
      Array.from({ length: 30 }, (_, index) => `r${index}`).slice(kept.length),
    );
  });

  it('name none when the field was enough', () => {
    const { data } = toFitted('get_objects', byId(rows(3, 2_000)), 3_000);
    expect(data._truncated).toMatchObject({ dropped_fields: ['body'], dropped_for_size: [] });
  });

  it('keep an id that is called like something inherited', () => {
    const objects = JSON.parse(`{"__proto__":${JSON.stringify(row(0, 'x'.repeat(900)))}}`) as object;
    const { data } = toFitted('get_objects', { ...byId([]), objects }, 700);
    expect(Object.keys(data.objects)).toEqual(['__proto__']);
  });
});

describe('oversized aggregate rows', () => {
  it('advise stages and never a skip of the call, and drop a hint that no longer holds', () => {
    const data = {
      class_name: 'Post',
      result_count: 40,
      results: rows(40, 500),
      auto_limited: true,
      auto_limit: 200,
      hint: 'old',
    };
    const { data: cut } = toFitted('aggregate', data, 3_000);
    expect(cut).toMatchObject({ auto_limited: true, auto_limit: 200 });
    expect(cut).not.toHaveProperty('hint');
    expect(cut).not.toHaveProperty('result_count');
    expect(cut._truncated['hint']).toMatch(/\$match.*\$project/);
    expect(cut._truncated['hint']).not.toMatch(/(?<!\$)skip/);
    expect(cut).not.toHaveProperty('next_call');
  });
});

describe('what cannot be cut', () => {
  it('is refused with its three heaviest fields and the keys that leave out the heaviest', () => {
    const refusal = refused(
      'get_object',
      { class_name: 'Post', object: row(1, 'x'.repeat(10_000), { b: 'y'.repeat(6_000) }) },
      4_000,
    );
    expect(refusal.gate).toBe('result_size');
    expect(refusal.message).toMatch(/^Tool result exceeded 4000 bytes \(\d+\)\./);
    expect(refusal.message).toContain(
      'Largest fields by bytes: body (~9.8 KB/record), b (~5.9 KB/record), createdAt (~26 B/record).',
    );
    expect(refusal.message).toContain(
      'Try keys: ["title","objectId","createdAt","updatedAt"] (drops the heaviest field).',
    );
    expect(refusal.message).toContain('Narrow the query: lower limit:');
  });

  it('of one object is the object without its heaviest field, where that is enough', () => {
    const object = row(1, 'x'.repeat(10_000), { b: 'y' });
    const { data } = toFitted('get_object', { class_name: 'Post', object }, 4_000);
    expect(data).toMatchObject({
      object: { title: object['title'], b: 'y' },
      _truncated: { dropped_fields: ['body'] },
    });
  });

  it('of samples, groups and values is their beginning, and says how to get the others', () => {
    const long = Array.from({ length: 40 }, (_, index) => ({
      key: `${index} ${'k'.repeat(200)}`,
      value: index,
    }));
    for (const [tool, member] of [
      ['group_by', 'groups'],
      ['distinct', 'values'],
      ['get_sample_objects', 'samples'],
    ] as const) {
      const { data } = toFitted(tool, { class_name: 'Post', [member]: long }, 4_096);
      const answer = data as unknown as Record<string, unknown[]> & {
        _truncated: { kept_count: number; hint: string };
      };
      expect(answer[member]?.length).toBe(answer._truncated.kept_count);
      expect(answer[member]).not.toEqual([]);
      expect(answer._truncated.hint).toMatch(/Ask for fewer|get_object/);
      if (member !== 'samples') expect(answer[member]?.[0]).toEqual(long[0]);
    }
  });

  it('continues a list of tools, classes or fields with skip, behind what was skipped already', () => {
    const entries = Array.from({ length: 30 }, (_, index) => ({ name: `n${index}`, text: 'x'.repeat(100) }));
    const lists: Record<string, object> = {
      list_tools: { tools: entries },
      get_all_schemas: { built_in: entries.slice(0, 2), custom: entries.slice(2) },
      get_schema: { fields: entries },
    };
    for (const [tool, data] of Object.entries(lists)) {
      const inputSchema = { type: 'object', properties: { skip: {}, prefix: {} } };
      const fitted = fitToSize(tool, data, { cap: 2_000, inputSchema, args: { prefix: 'n', skip: 5 } });
      if ('gate' in fitted) throw new Error('refused');
      const answer = fitted.data as Record<string, unknown>;
      const shown = ['tools', 'built_in', 'custom', 'fields'].flatMap(
        (name) => (answer[name] ?? []) as object[],
      );
      expect(shown).toEqual(entries.slice(0, shown.length));
      expect(shown.length).toBeGreaterThan(1);
      expect(answer['next_call']).toEqual({ tool, arguments: { prefix: 'n', skip: 5 + shown.length } });
    }
  });

  it('is diagnosed by field only where there are rows', () => {
    const text = {
      class_name: 'Post',
      format: 'csv',
      headers: ['body'],
      row_count: 1,
      output: 'x'.repeat(9_000),
    };
    expect(refused('query_class', text, 1_000).message).not.toContain('Largest fields');
    expect(refused('get_schema', { fields: ['x'.repeat(9_000)] }, 1_000).message).not.toContain(
      'Largest fields',
    );
  });

  it('is refused when not even one row fits', () => {
    expect(
      refused('query_class', page(rows(2, 10, { objectId: 'i'.repeat(5_000) })), 2_000).message,
    ).toContain('Narrow the query');
  });

  it.each<[string, string[], object, RegExp]>([
    [
      'get_sample_objects',
      ['limit'],
      { samples: rows(9, 500) },
      / Try limit: [1-5]\. Narrow the query: lower limit:\.$/,
    ],
    [
      'distinct',
      ['limit', 'where'],
      { values: ['x'.repeat(900), 'y', 'z'.repeat(2_000)] },
      / Try limit: 2\./,
    ],
    [
      'aggregate',
      ['pipeline'],
      { results: rows(1, 9_000) },
      / Try this as the last stage of pipeline: {"\$unset":\["body"\]}\./,
    ],
    [
      'get_sample_objects',
      [],
      { class_name: 'Post', samples: rows(1, 9_000) },
      / Try query_class: {"class_name":"Post","keys":\["title"/,
    ],
    [
      'explain_query',
      ['where'],
      { explanation: 'x'.repeat(9_000) },
      /\)\. Narrow the query: make where: stricter\.$/,
    ],
    ['get_schema', ['class_name'], { fields: ['x'.repeat(9_000)] }, /\(\d+\)\.$/],
    ['of_an_application', [], { results: rows(3, 3_000) }, /record\)\.$/],
  ])('is advised what %s takes, of %j', (tool, takes, data, text) => {
    expect(refused(tool, { ...data, pad: 'p'.repeat(4_000) }, 4_000, takes).message).toMatch(text);
  });

  it('never repeats a value, and only names that keys would accept, however many there are', () => {
    const name = fc.oneof(fc.string(), fc.constantFrom('a', 'b', 'password hint', '$x'));
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 200 }), (names) => {
        const object = Object.fromEntries(
          names.map((each, index) => [`${each}${index}`, 'SECRET'.repeat(50)]),
        );
        const { message } = refused('get_object', { object }, 200);
        const keys = JSON.parse(/Try keys: (\[.*?\]) \(/.exec(message)?.[1] ?? '[]') as string[];
        expect(message).not.toContain('SECRET');
        expect(keys.length).toBeLessThanOrEqual(64);
        expect(keys.filter((key) => !/^[A-Za-z][A-Za-z0-9_]*$/.test(key))).toEqual([]);
      }),
    );
  });
});

const value = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom('"'.repeat(200), '\n'.repeat(200), '\u0000'.repeat(100), '\ud800', '\u2028\u007f\u0080'),
  fc.integer(),
  fc.array(fc.string(), { maxLength: 5 }),
);
const anyRow = fc
  .dictionary(fc.constantFrom('a', 'b', 'c', 'line\nbreak', 'naïve "name"'), value)
  .map((extra) => ({ objectId: 'id', createdAt: 'then', updatedAt: 'now', ...extra }));

describe('whatever the rows', () => {
  const tool = fc.constantFrom('query_class', 'aggregate', 'get_objects');

  it('what is sent never exceeds the cap, never loses an identity, and never holds what it says was dropped', () => {
    fc.assert(
      fc.property(
        tool,
        fc.array(anyRow, { maxLength: 40 }),
        fc.integer({ min: 100, max: 6_000 }),
        fc.boolean(),
        (name, list, cap, pretty) => {
          const objects = Object.fromEntries(list.map((each, index) => [`k${index}`, each]));
          const data = name === 'get_objects' ? { objects } : page(list);
          const answer = fitToSize(name, data, { cap, pretty });
          if ('code' in answer) return;
          const sent = JSON.parse(answer.text) as Partial<Envelope>;
          const dropped = (sent._truncated?.['dropped_fields'] ?? []) as string[];
          expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(cap);
          for (const each of sent.results ?? Object.values(sent.objects ?? {})) {
            expect(each).toMatchObject({ objectId: 'id', createdAt: 'then', updatedAt: 'now' });
            expect(Object.keys(each as object).filter((key) => dropped.includes(key))).toEqual([]);
          }
        },
      ),
    );
  });

  it('the only column beside ids and times is never left out', () => {
    const named = (value: string) => ({ objectId: 'id', createdAt: 'then', updatedAt: 'now', value });
    fc.assert(
      fc.property(
        tool,
        fc.array(fc.string({ maxLength: 3_000 }).map(named), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 300, max: 6_000 }),
        (name, list, cap) => {
          const objects = Object.fromEntries(list.map((each, index) => [`k${index}`, each]));
          const answer = fitToSize(name, name === 'get_objects' ? { objects } : page(list), { cap });
          if ('code' in answer) return;
          const sent = JSON.parse(answer.text) as Partial<Envelope>;
          const kept = sent.results ?? Object.values(sent.objects ?? {});
          expect(kept).toEqual(list.slice(0, kept.length));
        },
      ),
    );
  });

  it('the rows it was given are left as they were', () => {
    const data = page(rows(5, 2_000));
    const before = structuredClone(data);
    fitToSize('query_class', data, { cap: 4_000 });
    expect(data).toEqual(before);
  });
});
