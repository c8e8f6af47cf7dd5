import { describe, expect, it } from 'vitest';
import { splitFilter } from './carried-filter.js';

const FIELDS = ['orgId', 'status', 'rating', 'album'];
const pointer = { __type: 'Pointer', className: 'Album', objectId: 'a1' };
const date = { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' };

describe('the filter that a vector index carries', () => {
  it('holds every condition on its filter fields that compares with a value', () => {
    const where = {
      $and: [
        { orgId: 'north', status: 'published' },
        { $and: [{ rating: { $gte: 2, $lt: 5 } }, { album: { $in: [pointer] } }] },
      ],
    };
    expect(splitFilter(where, FIELDS)).toEqual({
      early: [
        { orgId: 'north' },
        { status: 'published' },
        { rating: { $gte: 2, $lt: 5 } },
        { album: { $in: [pointer] } },
      ],
      isPartial: false,
    });
    expect(splitFilter({}, FIELDS)).toEqual({ early: [], isPartial: false });
    expect(splitFilter({ rating: date }, FIELDS).isPartial).toBe(false);
  });

  it.each([
    ['a column that the index cannot filter on', { title: 'x' }],
    ['a condition that an index reads in its own way', { status: { $ne: 'x' } }],
    ['a missing value', { status: null }],
    ['a value among which one is missing', { status: { $in: ['x', null] } }],
    ['a pattern', { status: { $regex: 'x' } }],
    ['a list', { status: ['x'] }],
    ['an object', { status: { of: 'x' } }],
    ['rights of rows', { $readableBy: { principals: ['*'] } }],
    ['one of several conditions', { $or: [{ status: 'x' }, { rating: 1 }] }],
  ])('leaves %s to the database, and says that it does', (_, where) => {
    expect(splitFilter({ $and: [{ orgId: 'north' }, where] }, FIELDS)).toEqual({
      early: [{ orgId: 'north' }],
      isPartial: true,
    });
  });
});
