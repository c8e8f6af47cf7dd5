import { describe, expect, it } from 'vitest';
import { music, refusalOf, shopReach } from '../music.fixture.js';
import { translateWhere, type WhereOptions } from './translate-where.js';

const song = (where: unknown, options: Partial<WhereOptions> = {}) =>
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true, ...options });
const note = (where: unknown) =>
  translateWhere(where, music('Note'), shopReach, { strictPointerShapes: true });
const artist1 = { __type: 'Pointer', className: 'Artist', objectId: 'a1' };
const iso = (text: string) => ({ __type: 'Date', iso: text });

describe('translateWhere: what passes', () => {
  it.each<[string, unknown, unknown]>([
    ['nothing asked is no constraint', undefined, {}],
    ['null is no constraint', null, {}],
    ['an empty object is no constraint', {}, {}],
    ['a plain value', { title: 'Blue' }, { title: 'Blue' }],
    ['null as a value', { title: null }, { title: null }],
    ['snake_case finds the wire name', { play_count: { $gt: 3 } }, { playCount: { $gt: 3 } }],
    ['a leading capital is lowered', { PlayCount: 3 }, { playCount: 3 }],
    ['a declared alias comes first', { externalStatus: 'x' }, { ExtStatus: 'x' }],
    ['only the root of a dotted path has spellings', { 'Meta.sub_key': 1 }, { 'meta.sub_key': 1 }],
    [
      'spellings that meet in one name are ANDed',
      { play_count: { $gt: 1 }, playCount: { $lt: 9 } },
      { $and: [{ playCount: { $gt: 1 } }, { playCount: { $lt: 9 } }] },
    ],
    [
      'several operators on one field',
      { playCount: { $gte: 1, $lt: 5 } },
      { playCount: { $gte: 1, $lt: 5 } },
    ],
    ['$exists', { genre: { $exists: false } }, { genre: { $exists: false } }],
    [
      'sets',
      { genre: { $in: ['a', 'b'] }, tags: { $all: ['x'] } },
      { genre: { $in: ['a', 'b'] }, tags: { $all: ['x'] } },
    ],
    ['$containedIn is $in', { genre: { $containedIn: ['a'] } }, { genre: { $in: ['a'] } }],
    ['$containsAll is $all', { tags: { $containsAll: ['a'] } }, { tags: { $all: ['a'] } }],
    [
      'two spellings of one operator both hold',
      { genre: { $in: ['a'], $containedIn: ['b'] } },
      { $and: [{ genre: { $in: ['a'] } }, { genre: { $in: ['b'] } }] },
    ],
    [
      'a regex with options',
      { title: { $regex: '^bl', $options: 'i' } },
      { title: { $regex: '^bl', $options: 'i' } },
    ],
    ['empty options say nothing', { title: { $regex: 'x', $options: '' } }, { title: { $regex: 'x' } }],
    ['a nested value is compared whole', { meta: { a: { b: 1 } } }, { meta: { a: { b: 1 } } }],
    [
      'operators inside an object speak of its members',
      { meta: { a: { b: { $gt: 1 } }, c: 2 } },
      { 'meta.a.b': { $gt: 1 }, 'meta.c': 2 },
    ],
    [
      'logical branches',
      { $or: [{ title: 'a' }, { play_count: 1 }] },
      { $or: [{ title: 'a' }, { playCount: 1 }] },
    ],
  ])('%s', (_, where, expected) => {
    expect(song(where)).toEqual(expected);
  });

  it('keeps an underscore name on a class without allowlist', () => {
    expect(note({ _p_song: 'Song$s1' })).toEqual({ _p_song: 'Song$s1' });
  });

  it('searches text on a class without allowlist', () => {
    expect(note({ $text: { $search: 'x' } })).toEqual({ $text: { $search: 'x' } });
  });

  it('lets an operator filter name fields outside the allowlist', () => {
    expect(song({ org_id: 'o1' }, { checkFields: false })).toEqual({ orgId: 'o1' });
  });
});

describe('translateWhere: dates and typed values', () => {
  it.each<[string, unknown, unknown]>([
    [
      'ISO text meets a date column',
      { released_on: { $gte: '2024-05-01' } },
      { releasedOn: { $gte: iso('2024-05-01T00:00:00.000Z') } },
    ],
    [
      'ISO text without an offset is UTC',
      { createdAt: '2024-05-01T10:00:00' },
      { createdAt: iso('2024-05-01T10:00:00.000Z') },
    ],
    [
      'an offset is honoured',
      { updatedAt: { $lt: '2024-05-01T10:00:00+0200' } },
      { updatedAt: { $lt: iso('2024-05-01T08:00:00.000Z') } },
    ],
    [
      'ISO text in a set',
      { releasedOn: { $in: ['2024-05-01'] } },
      { releasedOn: { $in: [iso('2024-05-01T00:00:00.000Z')] } },
    ],
    [
      'a Date object becomes its typed form',
      { releasedOn: { $lt: new Date(0) } },
      { releasedOn: { $lt: iso('1970-01-01T00:00:00.000Z') } },
    ],
    ['text on a text column stays text', { title: '2024-05-01' }, { title: '2024-05-01' }],
    [
      'a typed value keeps only its own members',
      { artist: { ...artist1, name: 'smuggled', ACL_: 1 } },
      { artist: artist1 },
    ],
    [
      'every type is reduced',
      {
        $and: [
          { meta: { __type: 'Date', iso: '2024-05-01', x: 1 } },
          { meta: { __type: 'File', name: 'f.png', url: 'u', x: 1 } },
          { meta: { __type: 'GeoPoint', latitude: 1, longitude: 2, x: 1 } },
          { meta: { __type: 'Bytes', base64: 'AA==', x: 1 } },
          {
            meta: {
              __type: 'Polygon',
              coordinates: [
                [0, 0],
                [0, 1],
                [1, 1],
              ],
              x: 1,
            },
          },
          { meta: { __type: 'Relation', className: 'Song', x: 1 } },
        ],
      },
      {
        $and: [
          { meta: iso('2024-05-01T00:00:00.000Z') },
          { meta: { __type: 'File', name: 'f.png', url: 'u' } },
          { meta: { __type: 'GeoPoint', latitude: 1, longitude: 2 } },
          { meta: { __type: 'Bytes', base64: 'AA==' } },
          {
            meta: {
              __type: 'Polygon',
              coordinates: [
                [0, 0],
                [0, 1],
                [1, 1],
              ],
            },
          },
          { meta: { __type: 'Relation', className: 'Song' } },
        ],
      },
    ],
  ])('%s', (_, where, expected) => {
    expect(song(where)).toEqual(expected);
  });
});

describe('translateWhere: pointer shapes', () => {
  it.each<[string, unknown, unknown]>([
    ['a bare id', { artist: 'a1' }, { artist: artist1 }],
    ['a bare id under an operator', { artist: { $ne: 'a1' } }, { artist: { $ne: artist1 } }],
    ['a prefixed id', { artist: 'Artist$a1' }, { artist: artist1 }],
    [
      'a mixed set',
      { artist: { $in: ['a1', 'Artist$a1', artist1] } },
      { artist: { $in: [artist1, artist1, artist1] } },
    ],
    [
      'every depth of logic',
      { $or: [{ $and: [{ artist: 'a1' }] }, { $nor: [{ artist: { $nin: ['a1'] } }] }] },
      { $or: [{ $and: [{ artist: artist1 }] }, { $nor: [{ artist: { $nin: [artist1] } }] }] },
    ],
    [
      'a typed member lends its class where the target is unknown',
      { curator: { $in: ['a1', artist1] } },
      { curator: { $in: [artist1, artist1] } },
    ],
    [
      'User is _User',
      { curator: 'User$u1' },
      { curator: { __type: 'Pointer', className: '_User', objectId: 'u1' } },
    ],
    ['no pointer at all', { artist: null }, { artist: null }],
  ])('%s becomes a typed pointer', (_, where, expected) => {
    expect(song(where)).toEqual(expected);
  });

  it('treats an undeclared column compared with pointers as a pointer column', () => {
    expect(note({ singer: { $in: ['a1', artist1] } })).toEqual({ singer: { $in: [artist1, artist1] } });
  });

  it.each<[string, unknown]>([
    ['$in', { curator: { $in: ['x1'] } }],
    ['$nin', { curator: { $nin: ['x1'] } }],
    ['two lending classes', { curator: { $in: ['x1', artist1, { ...artist1, className: 'Song' }] } }],
  ])('refuses a bare id of unknown class in %s, and passes it on only when lenient', (_, where) => {
    expect(refusalOf(() => song(where))).toMatchObject({ code: 'pointer_shape_mismatch' });
    expect(song(where, { strictPointerShapes: false })).toMatchObject({ curator: {} });
  });

  it.each<[string, unknown]>([
    ['a typed pointer', { curator: { __type: 'Pointer', className: 'Vault', objectId: 'v' } }],
    ['a prefixed id', { curator: 'Vault$v' }],
    ['a member of a set', { curator: { $in: ['Vault$v'] } }],
    ['a pointer inside an array', { tags: [{ __type: 'Pointer', className: 'Vault', objectId: 'v' }] }],
    ['a relation value', { meta: { __type: 'Relation', className: 'Vault' } }],
  ])('refuses %s into a hidden class', (_, where) => {
    expect(refusalOf(() => song(where))).toMatchObject({
      code: 'access_denied',
      details: { kind: 'hidden_class' },
    });
  });
});

const deep = (levels: number, core: unknown): unknown =>
  levels === 0 ? core : { a: deep(levels - 1, core) };

describe('translateWhere: what is refused', () => {
  it.each<[string, unknown, string, string?]>([
    ['an array as a query', [], 'invalid_query'],
    ['text as a query', '{"title":"x"}', 'invalid_query'],
    ['a class instance as a query', new Map(), 'invalid_query'],
    ...['$where', '$function', '$accumulator', '$expr'].map((operator): [string, unknown, string, string] => [
      `${operator} anywhere`,
      { meta: { a: [{ [operator]: 'x' }] } },
      'security_blocked',
      'code_execution',
    ]),
    ['$where at the top', { $where: 'sleep(1)' }, 'security_blocked', 'code_execution'],
    ...[
      '$not',
      '$elemMatch',
      '$size',
      '$type',
      '$mod',
      '$within',
      '$jsonSchema',
      '$comment',
      '$rand',
      '$caseSensitive',
    ].map((operator): [string, unknown, string] => [
      `unknown operator ${operator}`,
      { title: { [operator]: 1 } },
      'invalid_query',
    ]),
    ['$in without an array', { genre: { $in: 'a' } }, 'invalid_query'],
    ['$or without an array', { $or: { title: 1 } }, 'invalid_query'],
    ['an empty $and', { $and: [] }, 'invalid_query'],
    ['a branch that is no object', { $nor: ['x'] }, 'invalid_query'],
    ['$exists with a number', { genre: { $exists: 1 } }, 'invalid_query'],
    ['$gt with an array', { genre: { $gt: [1] } }, 'invalid_query'],
    ['$eq with an object', { genre: { $eq: { a: 1 } } }, 'invalid_query'],
    ['$gt with a number that is none', { playCount: { $gt: Number.NaN } }, 'invalid_query'],
    ['undefined as a value', { title: undefined }, 'invalid_query'],
    ['a class instance as a value', { title: /x/ }, 'invalid_query'],
    ['operators beside field names', { meta: { $gt: 1, a: 2 } }, 'invalid_query'],
    ['an operator inside an array value', { tags: [{ $gt: 1 }] }, 'invalid_query'],
    ['an operator inside a set', { tags: { $in: [{ $regex: 'a' }] } }, 'invalid_query'],
    ['a field operator at the top', { $gt: 1 }, 'invalid_query'],
    ['a logical operator under a field', { title: { $or: [{ title: 1 }] } }, 'invalid_query'],
    ['$relatedTo under a field', { title: { $relatedTo: {} } }, 'invalid_query'],
    ['$options alone', { title: { $options: 'i' } }, 'invalid_query'],
    ['a date column compared with other text', { releasedOn: { $gt: 'yesterday' } }, 'invalid_query'],
    ['a path through a pointer', { 'artist.name': 'x' }, 'invalid_query'],
    ['an operator that rides along on a typed value', { artist: { ...artist1, $gt: 1 } }, 'invalid_query'],
    [
      'an unknown __type',
      { artist: { __type: 'Object', className: 'Artist', objectId: 'a1' } },
      'invalid_query',
    ],
    ['a prototype name as __type', { artist: { __type: 'constructor' } }, 'invalid_query'],
    ['a pointer without id', { artist: { __type: 'Pointer', className: 'Artist' } }, 'invalid_query'],
    [
      'a GeoPoint off the globe',
      { place: { __type: 'GeoPoint', latitude: 91, longitude: 0 } },
      'invalid_query',
    ],
    ['an empty path segment', { 'meta..a': 1 }, 'invalid_query'],
    ['an operator as path segment', { 'meta.$where': 1 }, 'invalid_query'],
    ['the prototype as a field', JSON.parse('{"__proto__":{"$ne":1}}'), 'invalid_query'],
    ['a regex that is no text', { title: { $regex: 1 } }, 'security_blocked', 'invalid_regex'],
    [
      'a regex of 257 characters',
      { title: { $regex: 'a'.repeat(257) } },
      'security_blocked',
      'regex_too_long',
    ],
    ['a nested quantifier', { title: { $regex: '(a+)+$' } }, 'security_blocked', 'regex_redos'],
    [
      'an unknown regex option',
      { title: { $regex: 'a', $options: 's' } },
      'security_blocked',
      'invalid_regex',
    ],
    [
      'nine regex options',
      { title: { $regex: 'a', $options: 'iiiiiiiii' } },
      'security_blocked',
      'invalid_regex',
    ],
    ['text search beside an allowlist', { $text: { $search: 'x' } }, 'access_denied'],
    ['a field outside the allowlist', { royalty: 1 }, 'access_denied'],
    [
      'a field outside the allowlist in a branch',
      { $or: [{ title: 1 }, { $and: [{ 'royalty.x': 1 }] }] },
      'access_denied',
    ],
    ['a storage column beside an allowlist', { _p_artist: 'Artist$a1' }, 'access_denied'],
    ['the storage id beside an allowlist', { _id: 'x' }, 'access_denied'],
  ])('refuses %s', (_, where, code, cause) => {
    const refusal = refusalOf(() => song(where));
    expect([refusal?.code, refusal?.cause?.split(' at ')[0]]).toEqual([code, cause]);
  });

  it('names the allowed operators when it refuses an unknown one', () => {
    const refusal = refusalOf(() => song({ title: { $size: 1 } }));
    expect(refusal?.message).toMatch(/^Unknown query operator '\$size'\. Allowed operators: .*\$inQuery/);
  });

  it('passes seven objects around an operator and refuses eight', () => {
    expect(song({ meta: deep(7, { $gt: 1 }) })).toEqual({ 'meta.a.a.a.a.a.a.a': { $gt: 1 } });
    expect(refusalOf(() => song({ meta: deep(8, { $gt: 1 }) }))).toMatchObject({
      code: 'invalid_query',
      message: 'Query exceeds maximum depth of 8',
    });
  });

  it('counts arrays as levels', () => {
    expect(refusalOf(() => song({ meta: deep(8, []) }))).toMatchObject({ code: 'invalid_query' });
    expect(song({ meta: deep(7, []) })).toEqual({ meta: deep(7, []) });
  });

  it('refuses to compare a relation with a value', () => {
    const where = { songs: { __type: 'Pointer', className: 'Song', objectId: 's1' } };
    expect(
      refusalOf(() => translateWhere(where, music('Playlist'), shopReach, { strictPointerShapes: true })),
    ).toMatchObject({ code: 'invalid_query' });
  });

  it('tells which fields are allowed when it refuses one', () => {
    expect(refusalOf(() => song({ royalty: 1 }))?.details).toMatchObject({
      kind: 'field_denied',
      denied_field: 'royalty',
      allowed_fields: expect.arrayContaining(['title', 'objectId']),
    });
  });

  it('tells the logical name when a storage column is refused', () => {
    expect(refusalOf(() => song({ _p_artist: 'x' }))?.details).toMatchObject({
      kind: 'storage_form_field_ref',
      suggested_rewrite: '$artist',
    });
  });

  it('refuses internal columns in operator filters too', () => {
    expect(refusalOf(() => song({ _rperm: 'x' }, { checkFields: false }))).toMatchObject({
      code: 'security_blocked',
    });
  });

  it('never tells the wire why it blocked', () => {
    expect(refusalOf(() => song({ $where: '1' }))).toMatchObject({ message: 'Invalid params', opaque: true });
  });
});
