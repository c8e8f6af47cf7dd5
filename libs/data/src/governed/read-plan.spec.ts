import { describe, expect, it } from 'vitest';
import { type ClassAccess, FieldNames } from '#policy';
import { readOrder } from './read-plan.js';

const ACCESS: ClassAccess = { className: 'Song', names: new FieldNames(), readable: null, schema: undefined };
const BY_ID = [{ field: 'objectId', descending: false }];

describe('a class that is walked in parts', () => {
  it('goes on behind the last id, in the order of ids, beside whatever else limits its rows', () => {
    expect(readOrder({ orgId: 'acme' }, { after: '' }, ACCESS)).toEqual({
      where: { orgId: 'acme' },
      order: BY_ID,
    });
    expect(readOrder({ orgId: 'acme' }, { after: 'x1' }, ACCESS)).toEqual({
      where: { $and: [{ orgId: 'acme' }, { objectId: { $gt: 'x1' } }] },
      order: BY_ID,
    });
  });

  it.each([{ order: 'title' }, { order: null }, { skip: 0 }])('takes no other order: %j', (options) => {
    expect(() => readOrder({}, { after: 'x1', ...options } as never, ACCESS)).toThrow('order of ids');
  });

  it('leaves every other find in the order that was asked for', () => {
    expect(readOrder({}, { order: '-title' }, ACCESS)).toEqual({
      where: {},
      order: [{ field: 'title', descending: true }],
    });
  });
});
