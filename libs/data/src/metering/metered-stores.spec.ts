import { describe, expect, it } from 'vitest';
import { RecordSearcher } from '../record-search.js';
import { RecordReader, RecordWriter, StoreError } from '../record-store.js';
import { MeteredReader, MeteredSearcher, MeteredWriter } from './metered-stores.js';

const operation = { maxTimeMS: 1000, comment: 'test', signal: new AbortController().signal };

function meter() {
  const ended: number[] = [];
  let begun = 0;
  return {
    ended,
    begun: () => begun,
    begins: () => {
      begun += 1;
      return (rows: number) => ended.push(rows);
    },
  };
}

class TwoRows extends RecordReader {
  find = () => Promise.resolve([{ objectId: 'a' }, { objectId: 'b' }]);
  count = () => Promise.resolve(2);
  aggregate = () => Promise.resolve([{ objectId: null, total: 2 }]);
  related = () => Promise.resolve(['a', 'b', 'c']);
  explain = () => Promise.resolve({ stage: 'IXSCAN' });
}

class OneRow extends RecordWriter {
  create = () => Promise.resolve({ objectId: 'a' });
  update = () => Promise.resolve(null);
  delete = () => Promise.resolve(true);
}

describe('a metered store', () => {
  it('answers as the store it wraps and counts the rows handed out', async () => {
    const counted = meter();
    const reader = new MeteredReader(new TwoRows(), { meter: counted });
    const query = { className: 'Post', where: {} };
    expect(await reader.find({ ...query, limit: 9 }, operation)).toHaveLength(2);
    const first = { atMost: 1, form: null };
    expect(await reader.findShown({ ...query, limit: 9 }, first, operation)).toMatchObject({ count: 2 });
    expect(await reader.count(query, operation)).toBe(2);
    expect(await reader.explain(query, operation)).toEqual({ stage: 'IXSCAN' });
    const relation = { className: 'Post', objectId: 'p', key: 'likes', limit: 9 };
    expect(await reader.related(relation, operation)).toHaveLength(3);
    const totals = { className: 'Post', pipeline: [] as never };
    expect(await reader.aggregate(totals, operation)).toHaveLength(1);
    // Pairs of a relation are also those of rows that the caller may not read.
    expect(counted.ended).toEqual([2, 2, 0, 0, 0, 1]);
  });

  it('counts the row that a write answers with', async () => {
    const counted = meter();
    const writer = new MeteredWriter(new OneRow(), { meter: counted });
    await writer.create('Post', {}, operation);
    expect(await writer.update('Post', 'a', {}, {}, operation)).toBeNull();
    expect(await writer.delete('Post', 'a', {}, operation)).toBe(true);
    expect(counted.ended).toEqual([1, 0, 0]);
  });

  it('counts what a search found, and no row of a count by facets', async () => {
    const counted = meter();
    const hit = { row: { objectId: 'a' }, score: 1, highlights: [] };
    class OneHit extends RecordSearcher {
      text = () => Promise.resolve([hit]);
      nearest = () => Promise.resolve([hit, hit]);
      facets = () => Promise.resolve({ total: 9, facets: new Map() });
    }
    const searcher = new MeteredSearcher(new OneHit(), { meter: counted });
    const query = { className: 'Post', index: 'i', where: {}, limit: 9 };
    const match = { kind: 'everything' } as const;
    expect(await searcher.text({ ...query, match }, operation)).toEqual([hit]);
    const near = { ...query, field: 'v', vector: [1], filter: {}, candidates: 9 };
    expect(await searcher.nearest(near, operation)).toEqual([hit, hit]);
    expect((await searcher.facets({ ...query, match, facets: new Map() }, operation)).total).toBe(9);
    expect(counted.ended).toEqual([1, 2, 0]);
  });

  it('ends the measurement of an operation that fails, and passes its failure on', async () => {
    const counted = meter();
    class Failing extends TwoRows {
      override find = () => Promise.reject(new StoreError('timeout'));
    }
    const reader = new MeteredReader(new Failing(), { meter: counted });
    await expect(reader.find({ className: 'Post', where: {}, limit: 1 }, operation)).rejects.toBeInstanceOf(
      StoreError,
    );
    expect([counted.begun(), counted.ended]).toEqual([1, [0]]);
  });
});
