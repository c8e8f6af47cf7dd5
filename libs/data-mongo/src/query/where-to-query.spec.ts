import fc from 'fast-check';
import { Binary, type Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { StoreError } from '#data';
import { MUSIC, PATIENT } from '#data/contracts';
import { ParseStorage } from '../storage/parse-storage.js';
import { classWhereToQuery } from './where-to-query.js';

const ALBUM = new ParseStorage('Album', MUSIC.get('Album'));
const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });
const date = (iso: string) => ({ __type: 'Date', iso });
const place = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });

const cases: [string, Document, Document][] = [
  [
    'names the built-in columns',
    { objectId: 'a', createdAt: { $exists: true } },
    { _id: 'a', _created_at: { $exists: true } },
  ],
  [
    'keeps permission columns as they are',
    { _rperm: { $in: ['*', 'u1'] } },
    { _rperm: { $in: ['*', 'u1'] } },
  ],
  [
    'compares dates as dates',
    { released: { $gte: date('2026-01-01T00:00:00.000Z') } },
    { released: { $gte: new Date('2026-01-01') } },
  ],
  [
    'sends a date to its column',
    { createdAt: { $lt: date('2026-01-01T10:00:00Z') } },
    { _created_at: { $lt: new Date('2026-01-01T10:00:00Z') } },
  ],
  ['leaves ISO text on a text column alone', { title: '2026-01-01' }, { title: '2026-01-01' }],
  ['sends a pointer to its column', { artist: pointer('Artist', 'b') }, { _p_artist: 'Artist$b' }],
  ['gives a bare id the declared class', { artist: 'b' }, { _p_artist: 'Artist$b' }],
  [
    'gives bare ids in lists the declared class',
    { artist: { $nin: ['b', pointer('Artist', 'c')] } },
    { _p_artist: { $nin: ['Artist$b', 'Artist$c'] } },
  ],
  ['keeps a prefixed id', { artist: { $eq: 'Artist$b' } }, { _p_artist: { $eq: 'Artist$b' } }],
  [
    'lets a typed member donate its class',
    { anything: { $in: [pointer('Label', 'l1'), 'l2'] } },
    { _p_anything: { $in: ['Label$l1', 'Label$l2'] } },
  ],
  [
    'treats an undeclared name compared with a pointer as a pointer column',
    { maker: { $ne: pointer('Artist', 'b') } },
    { _p_maker: { $ne: 'Artist$b' } },
  ],
  ['asks for an absent pointer', { artist: null }, { _p_artist: null }],
  [
    'compares pointers inside arrays as objects',
    { guests: pointer('Artist', 'b') },
    { guests: pointer('Artist', 'b') },
  ],
  [
    'lists array members in nested form',
    { guests: { $all: [pointer('Artist', 'b')] } },
    { guests: { $all: [pointer('Artist', 'b')] } },
  ],
  ['reads $containsAll as $all', { tags: { $containsAll: ['live'] } }, { tags: { $all: ['live'] } }],
  [
    'reads $containedIn of an array as a subset',
    { tags: { $containedIn: ['a', 'b'] } },
    { $nor: [{ tags: { $elemMatch: { $nin: ['a', 'b'] } } }] },
  ],
  [
    'reads $containedIn of a scalar as membership',
    { title: { $containedIn: ['a'] } },
    { title: { $in: ['a'] } },
  ],
  [
    'keeps both of $in and $containedIn',
    { title: { $in: ['a'], $containedIn: ['b'] } },
    { $and: [{ title: { $in: ['a'] } }, { title: { $in: ['b'] } }] },
  ],
  ['maps the root of a dotted path', { 'extra.size': { $gt: 3 } }, { 'extra.size': { $gt: 3 } }],
  [
    'compares dates inside objects',
    { 'extra.when': { $lt: date('2026-01-01T00:00:00.000Z') } },
    { 'extra.when': { $lt: new Date('2026-01-01') } },
  ],
  [
    'recurses into logical operators at every depth',
    { $or: [{ $and: [{ artist: 'b' }] }, { $nor: [{ objectId: 'a' }] }] },
    { $or: [{ $and: [{ _p_artist: 'Artist$b' }] }, { $nor: [{ _id: 'a' }] }] },
  ],
  [
    'keeps regex and options',
    { title: { $regex: '^a', $options: 'i' } },
    { title: { $regex: '^a', $options: 'i' } },
  ],
  ['negates an operator', { title: { $not: { $regex: 'x' } } }, { title: { $not: { $regex: 'x' } } }],
  [
    'reads text search in Parse form',
    { title: { $text: { $search: { $term: 'blue', $caseSensitive: true } } } },
    { $text: { $search: 'blue', $caseSensitive: true } },
  ],
  ['reads text search in short form', { $text: { $search: 'blue' } }, { $text: { $search: 'blue' } }],
  [
    'ANDs two spellings of one column instead of letting the last win',
    { artist: 'b', _p_artist: 'Artist$c' },
    { $and: [{ _p_artist: 'Artist$b' }, { _p_artist: 'Artist$c' }] },
  ],
  [
    'matches elements of arrays of objects',
    { tags: { $elemMatch: { name: 'a', since: { $lt: date('2026-01-01T00:00:00.000Z') } } } },
    { tags: { $elemMatch: { name: 'a', since: { $lt: new Date('2026-01-01') } } } },
  ],
  [
    'compares bytes',
    { thumbnail: { __type: 'Bytes', base64: 'AQID' } },
    { thumbnail: new Binary(Buffer.from([1, 2, 3])) },
  ],
  ['makes no query of no constraint', {}, {}],
];

describe('where to query', PATIENT, () => {
  it('takes a row for readable when its rights name a principal, or when it has none', () => {
    const where = { $readableBy: { principals: ['*', 'ada'] }, $or: [{ title: 'a' }, { title: 'b' }] };
    expect(classWhereToQuery(where, ALBUM)).toEqual({
      $and: [
        { $or: [{ _rperm: { $in: ['*', 'ada'] } }, { _rperm: { $exists: false } }] },
        { $or: [{ title: 'a' }, { title: 'b' }] },
      ],
    });
    expect(classWhereToQuery({ $writableBy: { principals: [] } }, ALBUM)).toEqual({
      $or: [{ _wperm: { $in: [] } }, { _wperm: { $exists: false } }],
    });
  });

  it.each(cases)('%s', (_title, where, query) => {
    expect(classWhereToQuery(where, ALBUM)).toEqual(query);
  });

  const refused: [string, Document][] = [
    ['server-side code', { $where: 'true' }],
    ['an unknown operator', { title: { $rand: 1 } }],
    ['an expression where none belongs', { $expr: { $eq: [1, 1] } }],
    ['a list operator without a list', { title: { $in: 'a' } }],
    ['an empty alternative', { $or: [] }],
    ['operators mixed with fields', { title: { $gt: 'a', name: 'b' } }],
    ['a date that is none', { released: date('soon') }],
    ['a negative distance', { home: { $nearSphere: place(0, 0), $maxDistance: -1 } }],
    ['a place off the globe', { home: { $nearSphere: place(200, 0) } }],
    ['two areas at once', { home: { $geoWithin: { $box: [place(0, 0), place(1, 1)], $centerSphere: [] } } }],
    ['rights without principals', { $readableBy: {} }],
    ['principals that are no text', { $writableBy: { principals: [{ $ne: 1 }] } }],
    ['operators smuggled into a typed value', { 'extra.x': { $eq: { a: { $gt: 1 } } } }],
  ];
  it.each(refused)('refuses %s', (_title, where) => {
    expect(() => classWhereToQuery(where, ALBUM)).toThrow(new StoreError('invalid_query'));
  });

  const faultOf = (where: Document): unknown => {
    try {
      classWhereToQuery(where, ALBUM);
      return null;
    } catch (error) {
      return error;
    }
  };

  it('never throws anything but a StoreError', () => {
    const key = fc.constantFrom('title', 'artist', 'released', 'home', '$or', '$text', 'extra.a');
    const constraint = fc.oneof(
      fc.anything(),
      fc.dictionary(fc.constantFrom('$in', '$gt', '$nearSphere', '$geoWithin', '$regex'), fc.anything()),
    );
    fc.assert(
      fc.property(fc.dictionary(key, constraint), (where) => {
        const fault = faultOf(where);
        expect(fault === null || fault instanceof StoreError).toBe(true);
      }),
      { numRuns: 80 },
    );
  });
});
