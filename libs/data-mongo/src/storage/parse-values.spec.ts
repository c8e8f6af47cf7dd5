import { BSON, Decimal128, Long, ObjectId, UUID } from 'mongodb';
import { describe, expect, it } from 'vitest';
import type { ParseRow } from '#data';
import { MUSIC } from '#data/contracts';
import { UnstorableValue } from '../errors.js';
import { PARSE_VALUES, valueFromStorage } from './parse-values.js';
import { ParseStorage } from './parse-storage.js';

const REF = {
  column: 'n',
  field: { type: 'Number' },
  nested: false,
  undeclared: false,
  form: PARSE_VALUES,
} as const;
const ALBUM = new ParseStorage('Album', MUSIC.get('Album'));

describe('a whole number that a JSON number cannot say', () => {
  const asked = (text: string) => PARSE_VALUES.operandToStorage(text, REF);

  it('is compared with all digits of its text, or as the double that answers spell so', () => {
    expect(asked('9007199254740993')).toEqual(Long.fromString('9007199254740993'));
    expect(asked('1732650000123000000')).toBe(1732650000123000000);
    expect(asked('99999999999999999999')).toBe('99999999999999999999');
    expect(asked('7')).toBe('7');
  });
});

describe('BSON values', () => {
  const cases: [string, unknown, unknown][] = [
    ['a small long is a number', Long.fromString('42'), 42],
    ['a long beyond exact numbers is text', Long.fromString('9007199254740993'), '9007199254740993'],
    ['the largest exact integer is a number', Long.fromString('9007199254740991'), 9007199254740991],
    ['a decimal that is a number', Decimal128.fromString('12.50'), 12.5],
    ['a decimal with an exponent', Decimal128.fromString('1E+3'), 1000],
    [
      'a decimal no number holds',
      Decimal128.fromString('0.1000000000000000000001'),
      '0.1000000000000000000001',
    ],
    ['zero in decimal', Decimal128.fromString('0.00'), 0],
    ['a decimal NaN', Decimal128.fromString('NaN'), 'NaN'],
    ['an object id', new ObjectId('0123456789abcdef01234567'), '0123456789abcdef01234567'],
    [
      'binary',
      new UUID('00112233-4455-6677-8899-aabbccddeeff'),
      { __type: 'Bytes', base64: 'ABEiM0RVZneImaq7zN3u/w==' },
    ],
    [
      'a GeoJSON point',
      { type: 'Point', coordinates: [16, 48] },
      { __type: 'GeoPoint', latitude: 48, longitude: 16 },
    ],
    [
      'another geometry',
      {
        type: 'LineString',
        coordinates: [
          [0, 1],
          [1, 0],
        ],
      },
      {
        type: 'LineString',
        coordinates: [
          [0, 1],
          [1, 0],
        ],
      },
    ],
    ['undefined', undefined, null],
  ];

  it.each(cases)('reads %s', (_title, stored, json) => {
    expect(valueFromStorage(stored, 'typed')).toEqual(json);
  });

  it('writes dates with three decimals and Z', () => {
    const date = new Date('2026-05-04T03:02:01Z');
    expect(valueFromStorage([date], 'typed')).toEqual([{ __type: 'Date', iso: '2026-05-04T03:02:01.000Z' }]);
    expect(valueFromStorage([date], 'text')).toEqual(['2026-05-04T03:02:01.000Z']);
  });

  it('copies a key named __proto__ without touching prototypes', () => {
    const stored = BSON.deserialize(BSON.serialize({ extra: JSON.parse('{"__proto__": {"admin": true}}') }));
    const extra = ALBUM.toRow(stored)['extra'] as object;
    expect(Object.keys(extra)).toEqual(['__proto__']);
    expect('admin' in extra).toBe(false);
  });
});

describe('values that cannot be stored', () => {
  const cases: [string, ParseRow, string][] = [
    ['a bad date', { released: { __type: 'Date', iso: 'yesterday' } }, 'released'],
    ['a bad date deep inside', { extra: { when: [{ __type: 'Date', iso: 'no' }] } }, 'extra.when.0'],
    ['a place off the globe', { region: { __type: 'GeoPoint', latitude: 91, longitude: 0 } }, 'region'],
    [
      'a line for a polygon',
      {
        region: {
          __type: 'Polygon',
          coordinates: [
            [0, 0],
            [1, 1],
          ],
        },
      },
      'region',
    ],
    ['bytes that are no base64', { thumbnail: { __type: 'Bytes', base64: '???' } }, 'thumbnail'],
    ['a pointer without id', { artist: { __type: 'Pointer', className: 'Artist' } }, 'artist'],
    ['a nested operator key', { extra: { $where: '1' } }, 'extra.$where'],
    ['a nested dotted key', { extra: { 'a.b': 1 } }, 'extra.a.b'],
    ['an ACL that is no object', { ACL: ['*'] }, 'ACL'],
    ['an ACL with other rights', { ACL: { u1: { admin: true } } }, 'ACL'],
    ['a function', { title: () => 1 }, 'title'],
  ];

  it.each(cases)('refuses %s and names its place', (_title, row, place) => {
    let thrown: unknown;
    try {
      ALBUM.toDocument(row);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(UnstorableValue);
    expect((thrown as UnstorableValue).path).toBe(place);
  });
});
