import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClassAccess, FieldNames } from '#policy';
import { plainColumns, type ReadColumns, readOrder } from './read-plan.js';

const ACCESS: ClassAccess = { className: 'Song', names: new FieldNames(), readable: null, schema: undefined };
const NARROWED: ClassAccess = {
  ...ACCESS,
  readable: new Set(['title', 'meta', 'objectId', 'createdAt', 'updatedAt']),
};
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
  /** The columns, and what they leave of a row. */
  const describeColumns = ({ narrow, ...columns }: ReadColumns) => ({
    ...columns,
    shown: narrow({ title: 'Ikaria', first: { a: 1 }, meta: { sub: 1, other: 2 } }),
  });

  it('are worked out once for a list of keys', () => {
    const first = plainColumns(['title'], ACCESS);
    expect(plainColumns(['title'], ACCESS)).toBe(first);
    expect(first.asked.keys).toEqual(['title', 'objectId', 'createdAt', 'updatedAt']);
    expect(plainColumns(null, ACCESS)).toBe(plainColumns(undefined, ACCESS));
  });

  it('are those of one access: another agent or policy has its own', () => {
    expect(plainColumns(undefined, ACCESS).asked.keys).toBeUndefined();
    expect(plainColumns(['secret', 'title'], ACCESS).asked.keys).toContain('secret');
    expect(plainColumns(['secret', 'title'], NARROWED).asked.keys).not.toContain('secret');
    expect(plainColumns(undefined, NARROWED).asked.keys).toEqual([...(NARROWED.readable ?? [])]);
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
    expect(describeColumns(plainColumns(long, ACCESS))).toEqual(describeColumns(plainColumns(long, ACCESS)));
  });

  it('are forgotten when callers name too many lists', () => {
    const first = plainColumns(['first'], ACCESS);
    for (let index = 0; index < 64; index += 1) plainColumns([`other${index}`], ACCESS);
    expect(plainColumns(['first'], ACCESS)).not.toBe(first);
    expect(describeColumns(plainColumns(['first'], ACCESS))).toEqual(describeColumns(first));
  });

  const written = fc.constantFrom(
    'title',
    'play_count',
    'royalty',
    'meta.sub',
    'authData',
    'a,b',
    'createdAt',
  );
  const answered = (work: () => unknown) => {
    try {
      return { given: work() };
    } catch (error) {
      return { refused: error };
    }
  };

  it('are what a fresh access gives, as their order is, refusals included, whatever was asked before', () => {
    const requests = fc.array(
      fc.record({ keys: fc.array(written, { maxLength: 3 }), order: fc.array(written) }),
    );
    fc.assert(
      fc.property(requests, (asked) => {
        const shared: ClassAccess = { ...NARROWED };
        for (const { keys, order } of asked) {
          const text = order.map((name, index) => (index % 2 ? `-${name}` : name)).join();
          const [columnsIn, orderIn] = [
            (access: ClassAccess) => answered(() => describeColumns(plainColumns(keys, access))),
            (access: ClassAccess) => answered(() => readOrder({}, { order: text }, access)),
          ];
          expect(columnsIn(shared)).toEqual(columnsIn({ ...NARROWED }));
          expect(orderIn(shared)).toEqual(orderIn({ ...NARROWED }));
        }
      }),
    );
  });

  it('are shared with their order, and cannot be changed', () => {
    const { order } = readOrder({}, { order: 'title' }, ACCESS);
    expect(readOrder({}, { order: 'title' }, ACCESS).order).toBe(order);
    expect(readOrder({}, { order: 'title' }, { ...ACCESS }).order).not.toBe(order);
    expect([Object.isFrozen(order), Object.isFrozen(plainColumns(['title'], ACCESS))]).toEqual([true, true]);
  });

  it('are forgotten with orders that would fill the memory', () => {
    const { order } = readOrder({}, { order: 'first' }, ACCESS);
    for (let index = 0; index < 64; index += 1) readOrder({}, { order: `other${index}` }, ACCESS);
    expect(readOrder({}, { order: 'first' }, ACCESS).order).not.toBe(order);
    const long = Array.from({ length: 16 }, (_, index) => `${'a'.repeat(100)}${index}`).join();
    expect(readOrder({}, { order: long }, ACCESS).order).not.toBe(
      readOrder({}, { order: long }, ACCESS).order,
    );
  });
});
