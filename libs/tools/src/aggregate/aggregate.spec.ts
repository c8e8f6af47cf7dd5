import { describe, expect, it } from 'vitest';
import type { ParseRow } from '#data';
import { callOf, QUIET, runTool, SampleRecords, switches } from '../contracts/sample-records.js';
import type { ToolSwitches } from '../tool.js';
import { Aggregate } from './aggregate.js';

const GROUPED = [{ $group: { _id: '$_p_artist', plays: { $sum: 1 } } }];

function setUp(rows: readonly ParseRow[], process: ToolSwitches = QUIET) {
  const records = new SampleRecords(rows);
  const tool = new Aggregate();
  return {
    records,
    run: (args: object): Promise<Record<string, unknown>> =>
      runTool(
        tool,
        'aggregate',
        { class_name: 'Song', ...args },
        Object.assign(callOf(tool, records), { switches: process }),
      ),
  };
}

describe('aggregate', () => {
  it('answers with rows as the pipeline named them', async () => {
    const { records, run } = setUp([{ _id: 'rock', n: 2 }]);
    const answer = await run({ pipeline: GROUPED });
    expect(Object.entries(answer)).toEqual([
      ['class_name', 'Song'],
      ['pipeline_stages', 1],
      ['result_count', 1],
      ['route', 'mongo_direct'],
      ['results', [{ _id: 'rock', n: 2 }]],
    ]);
    expect(records.asked[0]?.options).toEqual({
      pipeline: GROUPED,
      applyCanonicalFilter: undefined,
      rewriteLookups: true,
      autoLimit: 200,
    });
  });

  it('compacts pointers unless told not to', async () => {
    const rows = [{ _p_artist: 'Artist$a1', plays: 3 }];
    expect(await setUp(rows).run({ pipeline: GROUPED })).toMatchObject({
      results: [{ artist: 'a1', plays: 3 }],
      pointer_classes: { artist: 'Artist' },
    });
    const raw = await setUp(rows).run({ pipeline: GROUPED, compact_pointers: false });
    expect(raw).toMatchObject({ results: rows });
    expect(raw).not.toHaveProperty('pointer_classes');
  });

  it.each([
    ['the limit was added and reached', true, 200, true],
    ['the limit was added and not reached', true, 199, false],
    ['the pipeline had a bound of its own', false, 200, false],
  ])('says whether it was cut: %s', async (_, autoLimited, count, expected) => {
    const { records, run } = setUp(Array.from({ length: count }, (__, n) => ({ n })));
    records.autoLimited = autoLimited;
    const answer = await run({ pipeline: GROUPED });
    expect([answer['auto_limited'], answer['auto_limit']]).toEqual(
      expected ? [true, 200] : [undefined, undefined],
    );
    expect(
      String(answer['hint']).includes('$limit') && String(answer['hint']).includes('count_objects'),
    ).toBe(expected);
  });

  it('names the row in the stamp only while rows are rows of the class', async () => {
    const on = switches({ includeSourceProvenance: true });
    const rows = [{ _id: 's1', _source: 'forged' }];
    const source = (object_id: string | null) => ({
      _source: { class: 'Song', tool: 'aggregate', object_id },
    });
    expect(await setUp(rows, on).run({ pipeline: [{ $match: {} }] })).toMatchObject({
      results: [source('s1')],
    });
    expect(await setUp(rows, on).run({ pipeline: GROUPED })).toMatchObject({ results: [source(null)] });
  });

  it.each([
    [{}, 'Invalid arguments: pipeline is required'],
    [
      { pipeline: GROUPED, compact_pointers: 'no' },
      'Invalid arguments: compact_pointers must be true or false',
    ],
    [{ pipeline: GROUPED, rewrite_lookups: 1 }, 'Invalid arguments: rewrite_lookups must be true or false'],
    [
      { pipeline: GROUPED, apply_canonical_filter: 0 },
      'Invalid arguments: apply_canonical_filter must be true or false',
    ],
  ])('refuses %j before anything is read', async (args, message) => {
    const { records, run } = setUp([]);
    await expect(run(args)).rejects.toMatchObject({ refusal: { code: 'invalid_argument', message } });
    expect(records.asked).toEqual([]);
  });
});
