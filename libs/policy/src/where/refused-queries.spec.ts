import { describe, expect, it } from 'vitest';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { translateWhere, type WhereOptions } from './translate-where.js';

const song = (where: unknown, options: Partial<WhereOptions> = {}) =>
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true, ...options });
const artist1 = { __type: 'Pointer', className: 'Artist', objectId: 'a1' };
const deep = (levels: number, core: unknown): unknown =>
  levels === 0 ? core : { a: deep(levels - 1, core) };

describe('translateWhere: what is refused', () => {
  it.each<[string, unknown, string, string?]>([
    ['an array as a query', [], 'invalid_query'],
    ['text as a query', 'title is x', 'invalid_query'],
    ['JSON text of a list as a query', '[{"title":"x"}]', 'invalid_query'],
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
    ['a type of the driver’s own', { title: { _bsontype: 'Code', code: '1' } }, 'invalid_query'],
    ['such a type in a list', { title: { $in: [{ _bsontype: 'MinKey' }] } }, 'invalid_query'],
    ['the prototype as a field', JSON.parse('{"__proto__":{"$ne":1}}'), 'invalid_query'],
    ['a regex that is no text', { title: { $regex: 1 } }, 'invalid_query'],
    ['a regex with a slip', { title: { $regex: '(a' } }, 'invalid_query'],
    [
      'a regex of 257 characters',
      { title: { $regex: 'a'.repeat(257) } },
      'security_blocked',
      'regex_too_long',
    ],
    ['a nested quantifier', { title: { $regex: '(a+)+$' } }, 'security_blocked', 'regex_redos'],
    ['an unknown regex option', { title: { $regex: 'a', $options: 'u' } }, 'invalid_query'],
    ['nine regex options', { title: { $regex: 'a', $options: 'iiiiiiiii' } }, 'invalid_query'],
    ['an operator without its $', { playCount: { gte: 5 } }, 'invalid_query'],
    ['operators without their $', { playCount: { gte: 5, lt: 9 } }, 'invalid_query'],
    ['Extended JSON of another form', { title: { $oid: 5 } }, 'invalid_query'],
    [
      'an included row',
      { artist: { __type: 'Object', className: 'Artist', objectId: 'a1', name: 'x' } },
      'invalid_query',
    ],
    ['members of the row that a pointer leads to', { artist: { name: 'x' } }, 'invalid_query'],
    ['the same beside an operator', { artist: { $ne: { name: 'x' } } }, 'invalid_query'],
    ['bytes that are not base64', { meta: { _type: 'Bytes', base64: 'AAAA...' } }, 'invalid_query'],
    ['text search beside an allowlist', { $text: { $search: 'x' } }, 'access_denied'],
    ['a field outside the allowlist', { royalty: 1 }, 'access_denied'],
    [
      'a field outside the allowlist in a branch',
      { $or: [{ title: 'x' }, { $and: [{ 'royalty.x': 1 }] }] },
      'access_denied',
    ],
    ['a storage column beside an allowlist', { _p_artist: 'Artist$a1' }, 'access_denied'],
    ['the storage id beside an allowlist', { _id: 'x' }, 'access_denied'],
  ])('refuses %s', (_, where, code, cause) => {
    const refusal = catchRefusal(() => song(where));
    expect([refusal?.code, refusal?.cause?.split(' at ')[0]]).toEqual([code, cause]);
  });

  it('names the allowed operators when it refuses an unknown one', () => {
    const refusal = catchRefusal(() => song({ title: { $size: 1 } }));
    expect(refusal?.message).toMatch(/^Unknown query operator '\$size'\. Allowed operators: .*\$inQuery/);
  });

  it.each<[string, object]>([
    ['or', { or: [{ title: 'x' }] }],
    ['nor', { $and: [{ nor: [{ title: 'x' }, { rating: 1 }] }] }],
    ['and', { artist: { $inQuery: { className: 'Artist', where: { and: [{ name: 'x' }] } } } }],
  ])('names the operator that %s was to be, at any place of a query', (name, where) => {
    expect(catchRefusal(() => song(where))?.message).toBe(`'${name}' is no operator: write '$${name}'`);
  });

  it('passes seven objects around an operator and refuses eight', () => {
    expect(song({ meta: deep(7, { $gt: 1 }) })).toEqual({ 'meta.a.a.a.a.a.a.a': { $gt: 1 } });
    expect(catchRefusal(() => song({ meta: deep(8, { $gt: 1 }) }))).toMatchObject({
      code: 'invalid_query',
      message: 'Query exceeds maximum depth of 8',
    });
  });

  it('counts arrays as levels', () => {
    expect(catchRefusal(() => song({ meta: deep(8, []) }))).toMatchObject({ code: 'invalid_query' });
    expect(song({ meta: deep(7, []) })).toEqual({ meta: deep(7, []) });
  });

  it.each([
    5,
    null,
    { __type: 'Pointer', className: 'Artist', objectId: 'a1' },
    { $gt: 'a' },
    { $exists: true },
    { $in: 's1' },
    { $eq: ['s1'] },
    { $inQuery: { className: 'Artist', where: {} } },
    { name: 'x' },
  ])('refuses to compare a relation with anything but its members: %j', (songs) => {
    expect(
      catchRefusal(() =>
        translateWhere({ songs }, music('Playlist'), shopReach, { strictPointerShapes: true }),
      ),
    ).toMatchObject({ code: 'invalid_query', message: expect.stringContaining('Pointer to one member') });
  });

  it('names the allowed fields when it refuses one', () => {
    expect(catchRefusal(() => song({ royalty: 1 }))?.details).toMatchObject({
      kind: 'field_denied',
      denied_field: 'royalty',
      allowed_fields: expect.arrayContaining(['title', 'objectId']),
    });
  });

  it('gives the logical name when a storage column is refused', () => {
    expect(catchRefusal(() => song({ _p_artist: 'x' }))?.details).toMatchObject({
      kind: 'storage_form_field_ref',
      suggested_rewrite: 'artist',
    });
  });

  it('refuses internal columns in operator filters too', () => {
    expect(catchRefusal(() => song({ _rperm: 'x' }, { checkFields: false }))).toMatchObject({
      code: 'security_blocked',
    });
  });

  it('never sends the caller why it blocked', () => {
    expect(catchRefusal(() => song({ $where: '1' }))).toMatchObject({
      message: 'Invalid params',
      opaque: true,
    });
  });
});
