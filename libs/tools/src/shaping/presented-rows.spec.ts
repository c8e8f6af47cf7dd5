import { describe, expect, it } from 'vitest';
import { keepsRowIdentity, rowId, stampSource } from './presented-rows.js';

describe('the provenance stamp', () => {
  it('holds class, tool and row, as the last member', () => {
    expect(Object.entries(stampSource({ title: 'x' }, 'Post', 'query_class', 'p1'))).toEqual([
      ['title', 'x'],
      ['_source', { class: 'Post', tool: 'query_class', object_id: 'p1' }],
    ]);
  });

  it('replaces a _source that came from the data', () => {
    const forged = { _source: { class: 'Trusted', tool: 'operator', object_id: 'x' } };
    expect(stampSource(forged, 'Post', 'aggregate', null)).toEqual({
      _source: { class: 'Post', tool: 'aggregate', object_id: null },
    });
  });

  it('names a row by either spelling of its id, and only by text', () => {
    expect(rowId({ objectId: 'a' })).toBe('a');
    expect(rowId({ _id: 'b' })).toBe('b');
    expect(rowId({ _id: { status: 'x' } })).toBeNull();
    expect(rowId({})).toBeNull();
  });
});

describe('rows of a pipeline', () => {
  it.each([
    ['filters and order', [{ $match: {} }, { $sort: { a: 1 } }, { $limit: 1 }, { $skip: 1 }]],
    ['unwinding', [{ $unwind: '$tags' }]],
    [
      'a projection that keeps or drops the id',
      [{ $project: { title: 1, objectId: 1 } }, { $project: { _id: 0 } }],
    ],
    ['added fields', [{ $addFields: { n: 1 } }]],
    ['joined fields', [{ $lookup: { from: 'B', as: 'bs' } }]],
  ])('keep their identity through %s', (_, pipeline) => {
    expect(keepsRowIdentity(pipeline)).toBe(true);
  });

  it.each([
    ['grouping', [{ $group: { _id: '$title' } }]],
    ['counting', [{ $sortByCount: '$title' }]],
    ['a new root', [{ $replaceRoot: { newRoot: '$author' } }]],
    ["another class's rows", [{ $unionWith: 'Other' }]],
    ['an id computed by the caller', [{ $addFields: { _id: '$title' } }]],
    ['an id projected from elsewhere', [{ $project: { objectId: '$title' } }]],
    ['a join in place of the id', [{ $lookup: { from: 'B', as: '_id' } }]],
    ['a stage nobody knows', [{ $new: {} }]],
    ['what is no pipeline', 'text'],
  ])('lose it through %s', (_, pipeline) => {
    expect(keepsRowIdentity(pipeline)).toBe(false);
  });
});
