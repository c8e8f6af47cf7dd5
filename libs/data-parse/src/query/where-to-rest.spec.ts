import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isExpressible, whereToRest } from './where-to-rest.js';

const asSession = (where: Record<string, unknown>) => whereToRest(where, { rightsAppliedBy: 'server' });
const asMaster = (where: Record<string, unknown>) => whereToRest(where, { rightsAppliedBy: 'constraint' });
const readable = { $readableBy: { principals: ['*', 'ada'] } };

describe('a constraint in REST form', () => {
  it('comes down to the plain id where nothing else is asked', () => {
    expect(asSession({ $and: [{ objectId: 'a1' }, { $and: [readable] }] })).toEqual({ objectId: 'a1' });
  });

  it('names rights to the master key alone', () => {
    expect(asMaster(readable)).toEqual({
      $or: [{ _rperm: { $in: ['*', 'ada'] } }, { _rperm: { $exists: false } }],
    });
    expect(asSession(readable)).toEqual({});
  });

  it('loses no condition when fields are named twice', () => {
    expect(
      asSession({ $and: [{ a: 1 }, { a: { $gt: 0 } }, { $or: [{ b: 1 }, { b: 2 }] }, { c: 3 }] }),
    ).toEqual({
      $and: [{ a: 1 }, { $or: [{ b: 1 }, { b: 2 }] }, { c: 3 }, { a: { $gt: 0 } }],
    });
  });

  it('has no column beside $and and $or that pointer permissions could use: Parse Server would drop these', () => {
    const columns = fc.constantFrom('owner', 'members', 'title', 'objectId', 'place');
    const field = fc
      .tuple(columns, fc.constantFrom<unknown>(1, { $ne: 2 }))
      .map(([name, value]) => ({ [name]: value }));
    const { where } = fc.letrec<{ where: Record<string, unknown> }>((tie) => ({
      where: fc.oneof(
        { depthSize: 'small' },
        field,
        fc
          .tuple(fc.constantFrom('$and', '$or'), fc.array(tie('where'), { minLength: 1, maxLength: 3 }))
          .map(([key, list]) => ({ [key]: list })),
      ),
    }));
    let combined = 0;
    fc.assert(
      fc.property(fc.array(where, { minLength: 1, maxLength: 4 }), (list) => {
        const rest = asSession({ $and: list });
        const keys = Object.keys(rest);
        if (!keys.some((key) => key.startsWith('$'))) return;
        combined += 1;
        expect(keys.filter((key) => key !== 'objectId')).toEqual(['$and']);
      }),
    );
    expect(combined).toBeGreaterThan(20);
  });

  it('never searches for words at the top, where Parse Server would make an index', () => {
    const rest = asSession({ $text: { $search: 'tea' } });
    expect(Object.keys(rest)).toEqual(['$and']);
  });

  it('counts near places as those within a circle', () => {
    const home = { $nearSphere: 'point', $maxDistanceInKilometers: 6371 };
    expect(whereToRest({ home }, { rightsAppliedBy: 'server', filterOnly: true })).toEqual({
      home: { $geoWithin: { $centerSphere: ['point', 1] } },
    });
  });

  it.each<[string, Record<string, unknown>]>([
    ['a question to another class', { owner: { $inQuery: { className: 'Vault', where: {} } } }],
    ['a selection from another class', { owner: { $select: { query: {}, key: 'x' } } }],
    ['a relation', { $relatedTo: { object: {}, key: 'x' } }],
    ['code', { $where: 'sleep(1)' }],
    ['an expression', { $expr: { $eq: ['$a', '$b'] } }],
    ['a column of the store', { _rperm: 'ada' }],
    ['a credential', { _hashed_password: { $exists: true } }],
    ['a member with an operator', { 'a.$b': 1 }],
    ['a mixture of operators and fields', { a: { $gt: 1, b: 2 } }],
    ['an empty branch', { $or: [] }],
    ['a question inside a list', { a: { $in: [{ $inQuery: { className: 'Vault', where: {} } }] } }],
    ['a question inside a value', { a: { b: { $select: { query: {}, key: 'x' } } } }],
    ['a question inside a point', { a: { $nearSphere: { x: { $inQuery: {} } } } }],
    ['a question inside a search', { $text: { $search: { $term: { $inQuery: {} } } } }],
    ['an inherited name', { a: { $__proto__: 1 } }],
  ])('does not send %s', (_title, where) => {
    expect(isExpressible(where)).toBe(false);
    expect(isExpressible({ $and: [{ a: 1 }, { $or: [where, { b: 1 }] }] })).toBe(false);
  });

  it('never sends an operator that is not on its list, however deep it stands', () => {
    const known = /^\$(and|or|nor|eq|ne|lte?|gte?|n?in|all|exists|regex|options|text|search|term)$/;
    const key = fc.oneof(fc.constantFrom('a', 'b', '$and', '$or', '$where', '$inQuery'), fc.string());
    const where = fc.letrec((tie) => ({
      value: fc.oneof(fc.integer(), fc.array(tie('where'), { maxLength: 2 }), tie('where')),
      where: fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
    })).where;
    fc.assert(
      fc.property(where, (constraint) => {
        let sent: Record<string, unknown>;
        try {
          sent = asSession(constraint as Record<string, unknown>);
        } catch {
          return;
        }
        for (const name of keysIn(sent)) expect(name.startsWith('$') ? known.test(name) : true).toBe(true);
        for (const name of Object.keys(sent)) expect(name).toMatch(/^([A-Za-z]|\$(and|or|nor)$)/);
      }),
    );
  });
});

/** Every key at any depth. */
function keysIn(value: unknown): string[] {
  if (value === null || typeof value !== 'object') return [];
  const own = Array.isArray(value) ? [] : Object.keys(value);
  return [...own, ...Object.values(value).flatMap(keysIn)];
}
