import { describe, expect, it } from 'vitest';
import { runPipeline, type PipelineContext } from './pipeline.js';

const ctx: PipelineContext = { tick: () => undefined, now: new Date(0), collection: () => [], variables: {} };

describe('a pipeline', () => {
  it('groups and sorts', () => {
    const docs = [
      { k: 'a', n: 1 },
      { k: 'b', n: 2 },
      { k: 'a', n: 3 },
    ];
    const out = [
      ...runPipeline(
        [
          { $group: { _id: '$k', n: { $sum: '$n' } } },
          { $sort: { n: -1 } },
          { $project: { _id: 0, k: '$_id', n: 1 } },
        ],
        docs,
        ctx,
      ),
    ];
    expect(out).toEqual([
      { k: 'a', n: 4 },
      { k: 'b', n: 2 },
    ]);
  });
});
