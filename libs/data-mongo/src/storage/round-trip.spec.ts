import fc from 'fast-check';
import { BSON, type Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import type { ParseRow } from '#data';
import { MUSIC, PATIENT } from '#data/contracts';
import { columnsToAcl } from './parse-values.js';
import { ParseStorage } from './parse-storage.js';

const ALBUM = new ParseStorage('Album', MUSIC.get('Album'));
const ARTIST = new ParseStorage('Artist', MUSIC.get('Artist'));

const FANS = { __type: 'Relation', className: '_User' };

const throughBson = (document: Document): Document => BSON.deserialize(BSON.serialize(document));
const readBack = (row: ParseRow, names = ALBUM) => names.toRow(throughBson(names.toDocument(row)));

const iso = fc
  .date({ min: new Date('1900-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString());
const id = fc.stringMatching(/^[A-Za-z0-9]{10}$/);
const typedDate = iso.map((text) => ({ __type: 'Date', iso: text }));
const pointerTo = (className: string) => id.map((objectId) => ({ __type: 'Pointer', className, objectId }));
const bytes = fc
  .uint8Array({ maxLength: 40 })
  .map((raw) => ({ __type: 'Bytes', base64: Buffer.from(raw).toString('base64') }));
const latitude = fc.double({ min: -90, max: 90, noNaN: true }).map((value) => value + 0);
const longitude = fc.double({ min: -180, max: 180, noNaN: true }).map((value) => value + 0);
const geoPoint = fc.record({ __type: fc.constant('GeoPoint'), latitude, longitude });
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
const key = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/).filter((name) => !name.startsWith('__'));

const { nested } = fc.letrec((tie) => ({
  nested: fc.oneof(
    { maxDepth: 4 },
    fc.string(),
    number,
    fc.boolean(),
    fc.constant(null),
    typedDate,
    bytes,
    geoPoint,
    pointerTo('Artist'),
    fc.array(tie('nested'), { maxLength: 4 }),
    fc.dictionary(key, tie('nested'), { maxKeys: 4 }),
  ),
}));

const acl = fc.dictionary(
  fc.oneof(
    fc.constant('*'),
    id,
    id.map((name) => `role:${name}`),
  ),
  fc.constantFrom({ read: true }, { write: true }, { read: true, write: true }),
  { maxKeys: 4 },
);

const album = fc.record(
  {
    objectId: id,
    createdAt: iso,
    updatedAt: iso,
    ACL: acl,
    title: fc.string(),
    artist: pointerTo('Artist'),
    released: typedDate,
    price: number,
    tags: fc.array(nested, { maxLength: 5 }),
    cover: fc.record({ __type: fc.constant('File'), name: fc.string({ minLength: 1 }) }),
    extra: fc.dictionary(key, nested, { maxKeys: 4 }),
    thumbnail: bytes,
    undeclared: pointerTo('Label'),
  },
  { requiredKeys: ['objectId'] },
);

describe('storage form', PATIENT, () => {
  it('gives back every row exactly as it was stored', () => {
    fc.assert(
      fc.property(album, (row) => {
        expect(readBack(row)).toEqual({ ...row, fans: FANS });
      }),
      { numRuns: 120 },
    );
  });

  it('never lets a typed value or a dollar key into a column name', () => {
    fc.assert(
      fc.property(album, (row) => {
        const allowed = /^(_id|_created_at|_updated_at|_acl|_rperm|_wperm|_p_(artist|undeclared)|[a-z]+)$/;
        for (const column of Object.keys(ALBUM.toDocument(row))) expect(column).toMatch(allowed);
      }),
    );
  });

  it('stores a pointer as Class$id under _p_, a place as longitude and latitude, a file as its name', () => {
    const row = {
      objectId: 'a1',
      artist: { __type: 'Pointer', className: 'Artist', objectId: 'b1' },
      cover: { __type: 'File', name: 'front.png', url: 'http://elsewhere' },
    };
    expect(ALBUM.toDocument(row)).toEqual({ _id: 'a1', _p_artist: 'Artist$b1', cover: 'front.png' });
    const home = { __type: 'GeoPoint', latitude: 48.2, longitude: 16.37 };
    expect(ARTIST.toDocument({ home })).toEqual({ home: [16.37, 48.2] });
    expect(readBack({ home }, ARTIST)).toEqual({ home });
  });

  it('closes a polygon and swaps its pairs to GeoJSON order', () => {
    const region = {
      __type: 'Polygon',
      coordinates: [
        [1, 2],
        [3, 4],
        [5, 0],
      ],
    };
    const stored = ALBUM.toDocument({ region });
    expect(stored).toEqual({
      region: {
        type: 'Polygon',
        coordinates: [
          [
            [2, 1],
            [4, 3],
            [0, 5],
            [2, 1],
          ],
        ],
      },
    });
    expect(ALBUM.toRow(stored)['region']).toEqual({
      __type: 'Polygon',
      coordinates: [
        [1, 2],
        [3, 4],
        [5, 0],
        [1, 2],
      ],
    });
  });

  it('keeps an ACL in the three columns Parse reads', () => {
    const ACL = { '*': { read: true }, u1: { read: true, write: true }, 'role:crew': { write: true } };
    const stored = ALBUM.toDocument({ ACL });
    expect(stored).toEqual({
      _rperm: ['*', 'u1'],
      _wperm: ['u1', 'role:crew'],
      _acl: { '*': { r: true }, u1: { r: true, w: true }, 'role:crew': { w: true } },
    });
    expect(ALBUM.toRow(stored)['ACL']).toEqual(ACL);
  });

  it('reads an ACL from the old column alone', () => {
    expect(columnsToAcl({ _acl: { u1: { r: true, w: true } } })).toEqual({ u1: { read: true, write: true } });
  });

  it('tells an empty ACL from none', () => {
    expect(ALBUM.toDocument({ ACL: {} })).toEqual({ _rperm: [], _wperm: [], _acl: {} });
    expect(ARTIST.toRow({ _id: 'x', _rperm: [], _wperm: [] })).toEqual({ objectId: 'x', ACL: {} });
    expect(ARTIST.toRow({ _id: 'x' })).toEqual({ objectId: 'x' });
  });

  it('answers a relation by its class and stores no column for it', () => {
    expect(ALBUM.toDocument({ fans: FANS })).toEqual({});
    expect(ALBUM.toRow({ _id: 'x' })['fans']).toEqual(FANS);
    expect(ALBUM.toRow({ _id: 'x' }, new Set(['title']))).toEqual({ objectId: 'x' });
  });
});

describe('columns Parse keeps for itself', () => {
  const secrets = [
    '_hashed_password',
    '_session_token',
    '_perishable_token',
    '_email_verify_token',
    '_failed_login_count',
    '_tombstone',
    '_auth_data_anonymous',
    '_unheard_of',
  ];

  it.each(secrets)('never answers %s', (column) => {
    const user = new ParseStorage('_User', MUSIC.get('_User'));
    expect(user.toRow({ _id: 'u', username: 'ada', [column]: 'secret' })).toEqual({
      objectId: 'u',
      username: 'ada',
    });
  });
});
