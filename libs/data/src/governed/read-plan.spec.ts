import { describe, expect, it } from 'vitest';
import { type ClassAccess, FieldNames } from '#policy';
import { plainColumns, readOrder } from './read-plan.js';

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

  it.each([{ order: 'title' }, { order: null }])('takes no other order: %j', (options) => {
    expect(() => readOrder({}, { after: 'x1', ...options } as never, ACCESS)).toThrow('order of ids');
  });

  it('leaves every other find in the order that was asked for', () => {
    expect(readOrder({}, { order: '-title' }, ACCESS)).toEqual({
      where: {},
      order: [{ field: 'title', descending: true }],
    });
  });
});

describe('the columns of a read', () => {
  const narrowed: ClassAccess = {
    ...ACCESS,
    readable: new Set(['title', 'objectId', 'createdAt', 'updatedAt']),
  };

  it('are worked out once for a list of keys', () => {
    const first = plainColumns(['title'], ACCESS);
    expect(plainColumns(['title'], ACCESS)).toBe(first);
    expect(first.asked.keys).toEqual(['title', 'objectId', 'createdAt', 'updatedAt']);
    expect(plainColumns(null, ACCESS)).toBe(plainColumns(undefined, ACCESS));
  });

  it('are those of one access: another agent or policy has its own', () => {
    expect(plainColumns(undefined, ACCESS).asked.keys).toBeUndefined();
    expect(plainColumns(['secret', 'title'], ACCESS).asked.keys).toContain('secret');
    expect(plainColumns(['secret', 'title'], narrowed).asked.keys).not.toContain('secret');
    expect(plainColumns(undefined, narrowed).asked.keys).toEqual([...(narrowed.readable ?? [])]);
  });

  it.each([[['_rperm']], [['a,b']], [[{ toJSON: () => 'title' }]], ['title'], [Array(65).fill('a')]])(
    'are refused for %j however often they are requested',
    (keys) => {
      plainColumns(['title'], ACCESS);
      for (let time = 0; time < 2; time += 1) expect(() => plainColumns(keys, ACCESS)).toThrow(/keys/);
    },
  );

  it('are not kept for lists that would fill the memory', () => {
    const long = Array.from({ length: 64 }, (_, index) => `${'a'.repeat(120)}${index}`);
    expect(plainColumns(long, ACCESS)).not.toBe(plainColumns(long, ACCESS));
    expect(plainColumns(long, ACCESS)).toEqual(plainColumns(long, ACCESS));
  });

  it('are forgotten when callers name too many lists', () => {
    const first = plainColumns(['first'], ACCESS);
    for (let index = 0; index < 64; index += 1) plainColumns([`other${index}`], ACCESS);
    expect(plainColumns(['first'], ACCESS)).not.toBe(first);
    expect(plainColumns(['first'], ACCESS)).toEqual(first);
  });
});
