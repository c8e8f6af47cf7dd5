import { describe, expect, it } from 'vitest';
import {
  callOf,
  QUIET,
  runTool,
  sampleClass,
  SampleRecords,
  sampleRows,
  switches,
} from '../contracts/sample-records.js';
import { CountObjects } from './count-and-explain.js';
import { GetObject, GetObjects, GetSampleObjects } from './read-objects.js';

const shown = (count: number) => sampleRows(count).map(({ ACL: _acl, ...row }) => row);

describe('count_objects', () => {
  const count = async (args: object) => {
    const records = new SampleRecords(sampleRows(3));
    const tool = new CountObjects();
    return {
      records,
      answer: await runTool(tool, 'count', { class_name: 'Post', ...args }, callOf(tool, records)),
    };
  };

  it("counts without fetching, and repeats the caller's own constraint", async () => {
    const { records, answer } = await count({ where: { status: 'live' } });
    expect(Object.entries(answer)).toEqual([
      ['class_name', 'Post'],
      ['count', 3],
      ['constraints', { status: 'live' }],
    ]);
    expect(records.asked.map(({ method }) => method)).toEqual(['count']);
  });

  it('repeats no constraint as the empty one', async () => {
    expect((await count({})).answer.constraints).toEqual({});
    expect((await count({ where: null })).answer.constraints).toEqual({});
  });

  it('passes an opt-out on', async () => {
    const { records } = await count({ apply_canonical_filter: false });
    expect(records.asked[0]?.options).toEqual({ where: undefined, applyCanonicalFilter: false });
  });
});

describe('get_object', () => {
  const get = (args: object, records = new SampleRecords(sampleRows(2))) => {
    const tool = new GetObject();
    return runTool(tool, 'get', { class_name: 'Post', object_id: 'r1', ...args }, callOf(tool, records));
  };

  it('returns id and times beside the object', async () => {
    expect(Object.entries(await get({}))).toEqual([
      ['class_name', 'Post'],
      ['object_id', 'r1'],
      ['created_at', '2024-01-01T00:00:00.000Z'],
      ['updated_at', '2024-01-02T00:00:00.000Z'],
      ['object', shown(2)[1]],
    ]);
  });

  it('names the large fields that an included row lost', async () => {
    const records = new SampleRecords(sampleRows(2));
    records.truncatedIncludeFields = { author: ['bio'] };
    expect(await get({ include: ['author'] }, records)).toMatchObject({
      truncated_include_fields: { author: ['bio'] },
    });
    expect(records.asked[0]?.options).toEqual({ objectId: 'r1', include: ['author'] });
  });

  it('refuses an object that is not there for this agent', async () => {
    await expect(get({ object_id: 'zz' })).rejects.toMatchObject({
      refusal: { code: 'parse_error', message: 'Parse error: Object not found: Post#zz' },
    });
  });

  it.each([
    [{ object_id: undefined }, 'Invalid arguments: object_id is required'],
    [{ object_id: 5 }, 'Invalid arguments: object_id must be a string'],
    [{ class_name: null }, 'Invalid arguments: class_name is required'],
  ])('refuses %j', async (args, message) => {
    await expect(get(args)).rejects.toMatchObject({ refusal: { code: 'invalid_argument', message } });
  });
});

describe('get_objects', () => {
  const posts = (storage: 'parse' | 'plain' = 'parse') =>
    new SampleRecords(sampleRows(60), [sampleClass('Post', {}, {}, { storage })]);
  const get = (ids: unknown, records = posts(), process = QUIET) => {
    const tool = new GetObjects();
    return runTool(
      tool,
      'get',
      { class_name: 'Post', ids },
      Object.assign(callOf(tool, records), { switches: process }),
    );
  };

  it('answers in the order asked, ids collapsed, absent ones named', async () => {
    const answer = await get(['r2', 'zz', 'r0', 'r2', 'aa']);
    expect(Object.entries(answer)).toEqual([
      ['class_name', 'Post'],
      ['objects', { r2: shown(3)[2], r0: shown(1)[0] }],
      ['missing', ['zz', 'aa']],
      ['requested', 4],
      ['found', 2],
    ]);
    expect(Object.keys(answer.objects)).toEqual(['r2', 'r0']);
  });

  it('finds nothing for no ids', async () => {
    expect(await get([])).toEqual({ class_name: 'Post', objects: {}, missing: [], requested: 0, found: 0 });
  });

  it('takes fifty different ids, however often they are repeated', async () => {
    const fifty = Array.from({ length: 50 }, (_, index) => `r${index}`);
    expect(await get([...fifty, ...fifty])).toMatchObject({ requested: 50, found: 50 });
  });

  it.each<[string, unknown, string]>([
    ['no ids', undefined, 'Invalid arguments: ids is required'],
    ['null', null, 'Invalid arguments: ids is required'],
    ['text', 'r1', 'Invalid arguments: ids must be a list of object ids'],
    ['an id that is none', ['a b'], 'Invalid arguments: ids: every entry must be an object id'],
    ['an id that is no text', [{ $ne: null }], 'Invalid arguments: ids: every entry must be an object id'],
  ])('refuses %s', async (_, ids, message) => {
    await expect(get(ids)).rejects.toMatchObject({ refusal: { code: 'invalid_argument', message } });
  });

  it('takes any text as an id of a class that Parse does not store', async () => {
    const ids = ['r1', 'ada@example.com', '0f8fad5b-d9cb-469f-a165-70867728950e'];
    expect(await get(ids, posts('plain'))).toMatchObject({ found: 1, missing: ids.slice(1) });
    await expect(get(['x'.repeat(1025)], posts('plain'))).rejects.toMatchObject({
      refusal: { code: 'invalid_argument' },
    });
  });

  it('refuses more than fifty ids and names the way to ask for more, before it looks at any', async () => {
    const ids = Array.from({ length: 51 }, (_, index) => `bad id ${index}`);
    await expect(get(ids)).rejects.toMatchObject({ refusal: { message: expect.stringMatching(/50.*\$in/) } });
  });

  it('keeps an object whose id is called like something inherited', async () => {
    const answer = await get(['__proto__'], new SampleRecords([{ objectId: '__proto__', title: 'odd' }]));
    expect(Object.entries(answer.objects)).toEqual([['__proto__', { objectId: '__proto__', title: 'odd' }]]);
  });

  it('stamps each object where the operator asked', async () => {
    const answer = await get(['r0'], undefined, switches({ includeSourceProvenance: true }));
    expect(answer.objects['r0']).toMatchObject({
      _source: { class: 'Post', tool: 'get_objects', object_id: 'r0' },
    });
  });
});

describe('get_sample_objects', () => {
  const sample = async (args: object) => {
    const records = new SampleRecords(sampleRows(30));
    const tool = new GetSampleObjects();
    return {
      records,
      answer: await runTool(tool, 'sample', { class_name: 'Post', ...args }, callOf(tool, records)),
    };
  };

  it('shows the newest objects and says how many', async () => {
    expect(Object.entries((await sample({ limit: 2 })).answer)).toEqual([
      ['class_name', 'Post'],
      ['sample_count', 2],
      ['samples', shown(2)],
      ['note', 'These are the 2 most recently created objects'],
    ]);
  });

  it.each([
    [undefined, 5],
    [1, 1],
    [100, 20],
  ])('asks with limit %j for %d', async (limit, expected) => {
    expect((await sample({ limit })).records.asked[0]?.options).toEqual({ limit: expected });
  });

  it.each([[0], [-3], ['5'], [2.5]])('refuses limit %j', async (limit) => {
    await expect(sample({ limit })).rejects.toMatchObject({ refusal: { code: 'invalid_argument' } });
  });

  it('has no way to opt out of the canonical filter', async () => {
    const { records } = await sample({ apply_canonical_filter: false });
    expect(records.asked[0]?.options).toEqual({ limit: 5 });
  });
});
