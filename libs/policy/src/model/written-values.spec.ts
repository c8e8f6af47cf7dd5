import fc from 'fast-check';
import { BSON, Decimal128, Double, Int32, Long, ObjectId, UUID } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { catchRefusal } from '../music.fixture.js';
import { readExtendedJson, readWrittenValues } from './written-values.js';

const iso = (text: string) => ({ __type: 'Date', iso: text });

describe('Extended JSON', () => {
  it.each<[unknown, unknown]>([
    [{ $oid: '65A000000000000000000001' }, '65a000000000000000000001'],
    [{ $date: '2024-01-31T00:00:00Z' }, iso('2024-01-31T00:00:00.000Z')],
    [{ $date: { $numberLong: '-1' } }, iso('1969-12-31T23:59:59.999Z')],
    [{ $date: 0 }, iso('1970-01-01T00:00:00.000Z')],
    [{ $numberInt: '-7' }, -7],
    [{ $numberLong: '9007199254740993' }, '9007199254740993'],
    [{ $numberDouble: 'NaN' }, 'NaN'],
    [{ $numberDecimal: '1.10' }, 1.1],
    [{ $numberDecimal: '0.1000000000000000000001' }, '0.1000000000000000000001'],
    [{ $uuid: '0F8FAD5B-D9CB-469F-A165-70867728950E' }, '0f8fad5b-d9cb-469f-a165-70867728950e'],
    [{ $binary: { base64: 'AAEC', subType: '00' } }, { __type: 'Bytes', base64: 'AAEC' }],
    [
      { $binary: { base64: 'D4+tW9nLRp+hZXCGdyiVDg==', subType: '04' } },
      '0f8fad5b-d9cb-469f-a165-70867728950e',
    ],
    [{ $regularExpression: { pattern: '^a', options: 'i' } }, { $regex: '^a', $options: 'i' }],
  ])('%j is read as %j, at any depth', (written, read) => {
    expect(readExtendedJson(written)).toEqual(read);
    expect(readExtendedJson({ a: [{ $gte: written }] })).toEqual({ a: [{ $gte: read }] });
  });

  it.each<[unknown, unknown]>([
    [{ $numberDecimal: '0.10' }, { $toDecimal: '0.10' }],
    [{ $numberLong: '9007199254740993' }, { $toLong: '9007199254740993' }],
    [{ $numberLong: '5' }, 5],
    [{ $numberDouble: 'NaN' }, { $toDouble: 'NaN' }],
  ])('%j keeps its type where a pipeline calculates with it, and is compared as before', (written, kept) => {
    const compared = readExtendedJson([written, written]);
    for (const operator of ['$add', '$multiply', '$subtract', '$divide', '$ifNull', '$max'])
      expect(readExtendedJson([{ $project: { x: { [operator]: ['$a', written] } } }])).toEqual([
        { $project: { x: { [operator]: ['$a', kept] } } },
      ]);
    expect(readExtendedJson({ $addFields: { rate: written } })).toEqual({ $addFields: { rate: kept } });
    for (const operator of ['$match', '$literal', '$in', '$eq'])
      expect(readExtendedJson({ $project: { x: { [operator]: [written, written] } } })).toEqual({
        $project: { x: { [operator]: compared } },
      });
  });

  it('is a number in a filter, whose $mod calculates nothing', () => {
    const two = { $numberDecimal: '2' };
    const asNumber = { total: { $mod: [2, 0] } };
    const written = { total: { $mod: [two, 0] } };
    expect(readWrittenValues(written)).toEqual(asNumber);
    expect(readExtendedJson([{ $match: written }])).toEqual([{ $match: asNumber }]);
    const compared = (divisor: unknown) => [
      { $match: { $expr: { $eq: [{ $mod: ['$total', divisor] }, 0] } } },
    ];
    expect(readExtendedJson(compared(two))).toEqual(compared({ $toDecimal: '2' }));
  });

  it.each([
    { $oid: 'x' },
    { $oid: null },
    { $date: 'yesterday' },
    { $date: '2025-02-30' },
    { $date: { $numberLong: 'x' } },
    { $numberLong: '1.5' },
    { $numberDecimal: 'x' },
    { $uuid: '1' },
    { $binary: 'AA==' },
    { $regularExpression: '^a' },
  ])('%j is refused with the form that is taken', (written) => {
    expect(catchRefusal(() => readExtendedJson(written))).toMatchObject({
      code: 'invalid_query',
      message: expect.stringMatching(/^'\$\w+' takes /),
    });
  });

  it('as the driver writes it is never left as operators, relaxed or canonical', () => {
    const value = fc.oneof(
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((number) => new Int32(number)),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((number) => Long.fromBigInt(number)),
      fc.double().map((number) => new Double(number)),
      fc
        .double({ noNaN: true, noDefaultInfinity: true })
        .map((number) => Decimal128.fromString(String(number))),
      fc.uuid({ version: 4 }).map((text) => new UUID(text)),
      fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
      fc.date({ noInvalidDate: true }),
    );
    fc.assert(
      fc.property(value, fc.boolean(), (stored, relaxed) => {
        const written = JSON.parse(BSON.EJSON.stringify({ value: stored }, { relaxed })) as unknown;
        expect(JSON.stringify(readExtendedJson(written))).not.toContain('$');
      }),
    );
  });
});

describe('values that answers show', () => {
  it.each<[object, object]>([
    [
      { _type: 'Pointer', class: 'Artist', id: 'a1' },
      { __type: 'Pointer', className: 'Artist', objectId: 'a1' },
    ],
    [
      { _type: 'GeoPoint', latitude: 1, longitude: 2 },
      { __type: 'GeoPoint', latitude: 1, longitude: 2 },
    ],
    [
      { _type: 'Bytes', base64: 'AAEC' },
      { __type: 'Bytes', base64: 'AAEC' },
    ],
    [
      { _type: 'File', name: 'a.png', url: 'u' },
      { __type: 'File', name: 'a.png', url: 'u' },
    ],
  ])('%j is read as %j where a value stands', (shown, read) => {
    expect(readWrittenValues({ field: { $in: [shown] } })).toEqual({ field: { $in: [read] } });
  });

  it('are left alone with other members, and where documents are made', () => {
    const other = { field: { _type: 'Pointer', class: 'Artist', id: 'a1', note: 'x' } };
    expect(readWrittenValues(other)).toBe(other);
    const made = [{ $project: { x: { _type: 'Pointer', class: '$a', id: '$b' } } }];
    expect(readExtendedJson(made)).toBe(made);
  });
});

describe('a pattern between \\Q and \\E', () => {
  it('stands for itself, whatever it holds', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\\E')),
        (text) => {
          const { $regex } = readExtendedJson({ $regex: `^\\Q${text}\\E` }) as { $regex: string };
          expect(new RegExp($regex).test(`${text}…`)).toBe(true);
          expect(new RegExp(`${$regex}$`).test(`${text}…`)).toBe(false);
        },
      ),
    );
  });

  it.each(['$regexMatch', '$regexFind', '$regexFindAll'])('stands for itself in %s as well', (expression) => {
    const call = { [expression]: { input: '$regex', regex: '^\\Qa.b', options: 'i' } };
    const escaped = { [expression]: { input: '$regex', regex: '^a\\.b', options: 'i' } };
    expect(readExtendedJson([{ $project: { at: call } }])).toEqual([{ $project: { at: escaped } }]);
    expect(readExtendedJson({ regex: '\\Qa.b' })).toEqual({ regex: '\\Qa.b' });
  });
});
