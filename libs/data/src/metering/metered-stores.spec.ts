import { describe, expect, it } from 'vitest';
import { unhurried } from '../contracts/operation.js';
import { RecordSearcher } from '../record-search.js';
import { RecordReader, RecordWriter } from '../record-adapters.js';
import { StoreError } from '../record-store.js';
import { runMetered, READ_MEASURES, SEARCH_MEASURES, WRITE_MEASURES } from './metered-stores.js';

const call = { caller: 'operator', context: unhurried() } as const;

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
  aggregate = () => Promise.resolve({ rows: [{ objectId: null, total: 2 }], route: 'mongo_direct' as const });
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
    const run = runMetered(new TwoRows(), READ_MEASURES, { ...call, meter: counted });
    const query = { className: 'Post', where: {} };
    expect(await run({ kind: 'find', ...query, limit: 9 })).toHaveLength(2);
    const first = { kind: 'findShown', ...query, limit: 9, atMost: 1 } as const;
    expect(await run(first)).toMatchObject({ count: 2 });
    expect(await run({ kind: 'count', ...query })).toBe(2);
    expect(await run({ kind: 'explain', ...query })).toEqual({ stage: 'IXSCAN' });
    const relation = { className: 'Post', objectId: 'p', key: 'likes', limit: 9 };
    expect(await run({ kind: 'related', ...relation })).toHaveLength(3);
    const totals = { className: 'Post', pipeline: [] as never };
    expect((await run({ kind: 'aggregate', ...totals })).rows).toHaveLength(1);
    // Pairs of a relation are also those of rows that the caller may not read.
    expect(counted.ended).toEqual([2, 2, 0, 0, 0, 1]);
  });

  it('counts the row that a write answers with', async () => {
    const counted = meter();
    const run = runMetered(new OneRow(), WRITE_MEASURES, { ...call, meter: counted });
    const row = { className: 'Post', objectId: 'a', where: {} };
    await run({ kind: 'create', className: 'Post', fields: {} });
    expect(await run({ kind: 'update', ...row, fields: {} })).toBeNull();
    expect(await run({ kind: 'delete', ...row })).toBe(true);
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
    const run = runMetered(new OneHit(), SEARCH_MEASURES, { ...call, meter: counted });
    const query = { className: 'Post', index: 'i', where: {}, limit: 9 };
    const match = { kind: 'everything' } as const;
    expect(await run({ kind: 'text', ...query, match })).toEqual([hit]);
    const near = { ...query, field: 'v', vector: [1], filter: {}, candidates: 9 };
    expect(await run({ kind: 'nearest', ...near })).toEqual([hit, hit]);
    expect((await run({ kind: 'facets', ...query, match, facets: new Map() })).total).toBe(9);
    expect(counted.ended).toEqual([1, 2, 0]);
  });

  it('ends the measurement of an operation that fails, and passes its failure on', async () => {
    const counted = meter();
    class Failing extends TwoRows {
      override find = () => Promise.reject(new StoreError('timeout'));
    }
    const run = runMetered(new Failing(), READ_MEASURES, { ...call, meter: counted });
    const find = { kind: 'find', className: 'Post', where: {}, limit: 1 } as const;
    await expect(run(find)).rejects.toBeInstanceOf(StoreError);
    expect([counted.begun(), counted.ended]).toEqual([1, [0]]);
  });
});
