import fc from 'fast-check';
import { Query } from 'mingo';
import { describe, expect, it } from 'vitest';
import { catchRefusal } from '../music.fixture.js';
import { admitsRow, assertAdmitted, findFixedValues } from './admitted-row.js';

const pointer = (objectId: string) => ({ __type: 'Pointer', className: 'Artist', objectId });

describe('the only value that a filter admits', () => {
  it.each<[object, object]>([
    [{ kind: 'Car' }, { kind: 'Car' }],
    [{ kind: { $eq: 'Car' }, wheels: { $gt: 2 } }, { kind: 'Car' }],
    [{ $and: [{ kind: { $in: ['Car'] } }, { region: { $in: ['north', 'south'] } }] }, { kind: 'Car' }],
    [{ owner: pointer('a1') }, { owner: pointer('a1') }],
    [{ 'address.city': 'Bern', objectId: 'x', gone: null, archived: { $ne: true } }, {}],
    [{ $or: [{ kind: 'Car' }, { kind: 'Van' }] }, {}],
  ])('of %j is %j', (filter, fixed) => {
    expect(Object.fromEntries(findFixedValues(filter as Record<string, unknown>))).toEqual(fixed);
  });
});

describe('a row that a filter admits', () => {
  const value = fc.constantFrom<unknown>('a', 'b', '', 1, 2, 2.5, true, false, null);
  const row = fc.dictionary(
    fc.constantFrom('x', 'y', 'z'),
    fc.oneof(value, fc.array(value, { maxLength: 2 })),
  );
  const condition = fc.oneof(
    value,
    fc.record({ $eq: value }),
    fc.record({ $ne: value }),
    fc.record({ $in: fc.array(value, { maxLength: 3 }) }),
    fc.record({ $nin: fc.array(value, { maxLength: 3 }) }),
    fc.record({ $exists: fc.boolean() }),
    fc
      .tuple(fc.constantFrom('$gt', '$gte', '$lt', '$lte'), fc.constantFrom<unknown>('a', 'b', 1, 2))
      .map(([operator, operand]) => ({ [operator]: operand })),
  );
  const clause = fc.dictionary(fc.constantFrom('x', 'y', 'z'), condition, { minKeys: 1 });
  const filter = fc.oneof(
    clause,
    fc
      .tuple(fc.constantFrom('$and', '$or', '$nor'), fc.array(clause, { minLength: 1, maxLength: 3 }))
      .map(([operator, branches]) => ({ [operator]: branches })),
  );

  it('is one that the database finds by it, and no other', () => {
    fc.assert(
      fc.property(filter, row, (where, fields) => {
        expect(admitsRow(where, fields)).toBe(new Query(where).test(fields));
      }),
      { numRuns: 2_000 },
    );
  });

  it('is never one of which the filter does not decide', () => {
    for (const undecided of [{ $regex: 'a' }, { $nearSphere: [0, 0] }, { $geoWithin: {} }])
      for (const where of [{ x: undecided }, { $nor: [{ x: undecided }] }, { $or: [{ x: undecided }] }])
        expect(admitsRow(where, { x: 'a' })).toBe(false);
    expect(admitsRow({ objectId: { $in: ['a1'] } }, { x: 'a' })).toBe(false);
  });

  it.each<[boolean, unknown]>([
    [true, undefined],
    [true, { '*': { read: true } }],
    [true, { u2: { write: true }, 'role:sales': { read: true } }],
    [false, {}],
    [false, { u1: { write: true }, u2: { read: true } }],
    [false, { u1: true }],
    [false, 'u1'],
    [false, JSON.parse('{"__proto__":{"read":true}}')],
  ])('is readable by who has the right: %j of the rights %j', (isReadable, ACL) => {
    const where = { $readableBy: { principals: ['*', 'u1', 'role:sales', 'toString'] } };
    expect(admitsRow({ ...where, x: 'a' }, { x: 'a', ACL })).toBe(isReadable);
    expect(admitsRow({ ...where, x: 'b' }, { x: 'a', ACL })).toBe(false);
    expect(admitsRow({ $writableBy: where.$readableBy }, { ACL })).toBe(false);
  });
});

const FILTER = { region: { $in: ['north', 'south'] } };

it('a refusal names no column that the caller did not write, such as one with a default', () => {
  const row = { region: 'west', title: 'x' };
  const refused = catchRefusal(() => assertAdmitted('Order', FILTER, row, new Set(['title'])));
  expect(refused).toMatchObject({ code: 'access_denied', details: { kind: 'row_filter' } });
  expect(refused?.message).not.toMatch(/region|north|south/);
});

it('a refused row is told by the column that was written, never by the filter', () => {
  const refused = catchRefusal(() =>
    assertAdmitted('Order', FILTER, { region: 'west' }, new Set(['region'])),
  );
  expect(refused).toMatchObject({ code: 'access_denied', details: { kind: 'row_filter' } });
  expect(refused?.message).toContain("'region'");
  expect(refused?.message).not.toMatch(/north|south/);
});
