import fc from 'fast-check';
import { Query } from 'mingo';
import { describe, expect, it } from 'vitest';
import { catchRefusal } from '../music.fixture.js';
import type { ClassSchema, FieldSchema } from '../model/class-schema.js';
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

describe('one value that is written in several ways', () => {
  const of = (type: FieldSchema['type'], storage?: 'plain'): ClassSchema => ({
    className: 'Offer',
    fields: new Map([['x', { type, ...(storage && { origin: 'declared' as const }) }]]),
    classLevelPermissions: null,
    indexes: [],
    ...(storage && { storage }),
  });
  const date = (iso: string) => ({ __type: 'Date', iso });
  const day = date('2030-01-01T00:00:00.000Z');

  it.each<[unknown, readonly unknown[]]>([
    [9, ['9', '9.0', '9e0', '90e-1', '0.9E+1']],
    [9.5, ['9.5', '9.50', '95e-1']],
    ['9007199254740993', ['9007199254740993']],
    [0, [-0, '0', '-0.0', '0e5']],
  ])('is %j in a plain class, and no denial of it admits %j', (operand, spellings) => {
    for (const value of spellings)
      for (const denied of [
        { x: { $ne: operand } },
        { x: { $nin: [operand] } },
        { $nor: [{ x: operand }] },
        { $nor: [{ x: { $gte: operand } }] },
        { $nor: [{ x: { $lte: operand } }] },
        { $or: [{ x: { $ne: operand } }, { y: 1 }] },
      ])
        expect([value, denied, admitsRow(denied, { x: value }, of('Number', 'plain'))]).toEqual([
          value,
          denied,
          false,
        ]);
  });

  it('has the order of numbers, of which none is rounded', () => {
    const schema = of('Number', 'plain');
    expect(admitsRow({ $nor: [{ x: { $gte: 100 } }] }, { x: '250.00' }, schema)).toBe(false);
    expect(admitsRow({ $nor: [{ x: { $gte: 100 } }] }, { x: '25.00' }, schema)).toBe(true);
    expect(admitsRow({ x: { $ne: '9007199254740993' } }, { x: '9007199254740992' }, schema)).toBe(true);
    expect(admitsRow({ x: { $lt: 100 } }, { x: '1e999999' }, schema)).toBe(false);
    expect(admitsRow({ $nor: [{ x: { $lt: 100 } }] }, { x: '1e999999' }, schema)).toBe(false);
  });

  it('is not decided where the column is not known to hold texts or numbers', () => {
    for (const where of [{ x: '1.0' }, { x: { $ne: '1.0' } }, { $nor: [{ x: '1.0' }] }])
      expect(admitsRow(where, { x: '1.00' }, of('Object', 'plain'))).toBe(false);
    expect(admitsRow({ x: { $ne: '1.0' } }, { x: '1.00' }, of('String', 'plain'))).toBe(true);
    expect(admitsRow({ x: { $ne: '1.0' } }, { x: '1.00' }, of('String'))).toBe(true);
    expect(admitsRow({ x: 5 }, { x: '5' }, of('Object'))).toBe(false);
  });

  it('is one time for a time stamp that a row shows as text', () => {
    const stamped = { createdAt: day.iso };
    expect(admitsRow({ $nor: [{ createdAt: { $gte: day } }] }, stamped)).toBe(false);
    expect(admitsRow({ createdAt: { $gte: day } }, stamped)).toBe(true);
    expect(admitsRow({ createdAt: { $ne: date('1970-01-01T00:00:00.000Z') } }, stamped)).toBe(true);
  });

  it('of a row that is only planned, its time stamps decide nothing, and its id is a new one', () => {
    for (const where of [
      { createdAt: { $gte: day } },
      { $nor: [{ createdAt: { $gte: day } }] },
      { updatedAt: { $ne: day } },
      { objectId: 'a1' },
      { $nor: [{ objectId: { $gt: 'a1' } }] },
    ])
      expect([where, admitsRow(where, { x: 1 })]).toEqual([where, false]);
    expect(admitsRow({ objectId: { $nin: ['a1'] } }, { x: 1 })).toBe(true);
  });

  it('is another object with its members in another order', () => {
    const where = { x: { a: 1, b: 2 } };
    expect(admitsRow(where, { x: { a: 1, b: 2 } })).toBe(true);
    expect(admitsRow(where, { x: { b: 2, a: 1 } })).toBe(false);
  });

  it('is absent for a range that begins with nothing', () => {
    expect(admitsRow({ $nor: [{ x: { $gte: null } }] }, {})).toBe(false);
    expect(admitsRow({ $nor: [{ x: { $lte: null } }] }, { x: null })).toBe(false);
    expect(admitsRow({ x: { $all: [] } }, { x: [1] })).toBe(false);
  });
});

const FILTER = { region: { $in: ['north', 'south'] } };

it('a refusal names no column that the caller did not write, such as one with a default', () => {
  const row = { region: 'west', title: 'x' };
  const refused = catchRefusal(() => assertAdmitted('Order', FILTER, row, { written: new Set(['title']) }));
  expect(refused).toMatchObject({ code: 'access_denied', details: { kind: 'row_filter' } });
  expect(refused?.message).not.toMatch(/region|north|south/);
});

it('a refused row is told by the column that was written, never by the filter', () => {
  const refused = catchRefusal(() =>
    assertAdmitted('Order', FILTER, { region: 'west' }, { written: new Set(['region']) }),
  );
  expect(refused).toMatchObject({ code: 'access_denied', details: { kind: 'row_filter' } });
  expect(refused?.message).toContain("'region'");
  expect(refused?.message).not.toMatch(/north|south/);
});
