import { describe, expect, it } from 'vitest';
import { type CrossClassQuery, hasCrossClassQuery, mapCrossClass, type Where } from '../model/where.js';
import { music, catchRefusal, shopReach } from '../music.fixture.js';
import { translateWhere } from './translate-where.js';

const translate = (where: unknown, className = 'Song', checkFields = true) =>
  translateWhere(where, music(className), shopReach, { strictPointerShapes: true, checkFields });
const codeOf = (where: unknown) => {
  const refusal = catchRefusal(() => translate(where));
  return refusal && [refusal.code, refusal.details?.kind ?? refusal.cause?.split(' at ')[0]];
};
const inArtist = (where: unknown) => ({ artist: { $inQuery: { className: 'Artist', where } } });
const nested = (levels: number): unknown =>
  levels === 0
    ? { title: 'x' }
    : { favourite: { $inQuery: { className: 'Artist', where: nested(levels - 1) } } };
const list = { __type: 'Pointer', className: 'Playlist', objectId: 'p1' };

describe('questions to other classes', () => {
  it.each<[string, unknown, unknown]>([
    [
      '$inQuery by the other class’s names and types',
      inArtist({ Born: { $lt: '2000-01-01' } }),
      inArtist({ born: { $lt: { __type: 'Date', iso: '2000-01-01T00:00:00.000Z' } } }),
    ],
    [
      '$notInQuery without a constraint',
      { artist: { $notInQuery: { className: 'User' } } },
      { artist: { $notInQuery: { className: '_User', where: {} } } },
    ],
    [
      '$select',
      { title: { $select: { query: { className: 'Artist', where: { Name: 'x' } }, key: 'Title' } } },
      { title: { $select: { query: { className: 'Artist', where: { name: 'x' } }, key: 'title' } } },
    ],
    [
      '$dontSelect beside other conditions',
      { title: { $ne: 'x', $dontSelect: { query: { className: 'Artist', where: {} }, key: 'name' } } },
      { title: { $ne: 'x', $dontSelect: { query: { className: 'Artist', where: {} }, key: 'name' } } },
    ],
    [
      '$relatedTo',
      { $relatedTo: { object: { ...list, extra: 1 }, key: 'Songs' } },
      { $relatedTo: { object: list, key: 'songs' } },
    ],
    [
      '$relatedTo of a prefixed id',
      { $or: [{ $relatedTo: { object: 'Playlist$p1', key: 'songs' } }] },
      { $or: [{ $relatedTo: { object: list, key: 'songs' } }] },
    ],
  ])('translates %s', (_, where, expected) => {
    expect(translate(where)).toEqual(expected);
  });

  it('translates conditions on a relation into questions for its members', () => {
    const holds = (...ids: string[]) => ({ className: 'Playlist', members: { className: 'Song', ids } });
    const song = { __type: 'Pointer', className: 'Song', objectId: 's1' };
    expect(translate({ songs: song }, 'Playlist')).toEqual({ songs: { $inRelation: holds('s1') } });
    expect(translate({ songs: { $ne: 's1' } }, 'Playlist')).toEqual({
      songs: { $notInRelation: holds('s1') },
    });
    expect(translate({ $or: [{ songs: { $in: ['s1', 'Song$s2'] } }] }, 'Playlist')).toEqual({
      $or: [{ songs: { $inRelation: holds('s1', 's2') } }],
    });
    const titled = { className: 'Song', where: { Title: 'x' } };
    expect(translate({ songs: { $notInQuery: titled } }, 'Playlist')).toEqual({
      songs: {
        $notInRelation: { className: 'Playlist', members: { className: 'Song', where: { title: 'x' } } },
      },
    });
  });

  it.each<[string, unknown, string, string | undefined]>([
    [
      'a hidden class',
      { artist: { $inQuery: { className: 'Vault', where: {} } } },
      'access_denied',
      'hidden_class',
    ],
    [
      'a filtered class',
      { title: { $select: { query: { className: 'Ledger', where: {} }, key: 'x' } } },
      'access_denied',
      'class_filter',
    ],
    ['a hidden owner', { $relatedTo: { object: 'Vault$v', key: 'songs' } }, 'access_denied', 'hidden_class'],
    [
      'a malformed class name',
      { artist: { $notInQuery: { className: '_Join:users:_Role', where: {} } } },
      'security_blocked',
      'cross_class_denied',
    ],
    [
      'a class name that is no text',
      { artist: { $inQuery: { className: { $ne: 1 }, where: {} } } },
      'security_blocked',
      'cross_class_denied',
    ],
    ['no class name', { artist: { $inQuery: { where: {} } } }, 'invalid_query', undefined],
    [
      'further members',
      { artist: { $inQuery: { className: 'Artist', where: {}, limit: 5 } } },
      'invalid_query',
      undefined,
    ],
    [
      'further members in a query',
      { title: { $select: { query: { className: 'Artist', where: {}, order: 'fee' }, key: 'name' } } },
      'invalid_query',
      undefined,
    ],
    ['a hidden field inside', inArtist({ fee: { $gt: 1 } }), 'access_denied', 'field_denied'],
    [
      'an internal field inside',
      inArtist({ $or: [{ _rperm: 'x' }] }),
      'security_blocked',
      'denied_internal_field',
    ],
    ['code inside', inArtist({ $where: '1' }), 'security_blocked', 'code_execution'],
    ['an unknown operator inside', inArtist({ name: { $size: 1 } }), 'invalid_query', undefined],
    ['a query inside that is no object', inArtist([]), 'invalid_query', undefined],
    [
      'a hidden key',
      { title: { $select: { query: { className: 'Artist', where: {} }, key: 'fee' } } },
      'access_denied',
      'field_denied',
    ],
    [
      'an internal key',
      { title: { $select: { query: { className: '_User', where: {} }, key: 'authData.x' } } },
      'security_blocked',
      'denied_internal_field',
    ],
    [
      'no key',
      { title: { $select: { query: { className: 'Artist', where: {} } } } },
      'invalid_query',
      undefined,
    ],
    [
      'a hidden relation',
      { $relatedTo: { object: list, key: 'secretSongs' } },
      'access_denied',
      'field_denied',
    ],
    [
      'a column that is no relation',
      { $relatedTo: { object: list, key: 'name' } },
      'invalid_query',
      undefined,
    ],
    [
      'a relation to another class',
      { $relatedTo: { object: list, key: 'fans' } },
      'invalid_query',
      undefined,
    ],
    ['a relation by a path', { $relatedTo: { object: list, key: 'songs.x' } }, 'invalid_query', undefined],
    [
      'an owner without class',
      { $relatedTo: { object: 'p1', key: 'songs' } },
      'security_blocked',
      'cross_class_denied',
    ],
    [
      'an owner of a malformed class',
      { $relatedTo: { object: { ...list, className: '_Join:x' }, key: 'songs' } },
      'security_blocked',
      'cross_class_denied',
    ],
    ['no owner', { $relatedTo: { key: 'songs' } }, 'security_blocked', 'cross_class_denied'],
  ])('refuses %s', (_, where, code, kind) => {
    expect(codeOf(where)).toEqual([code, kind]);
  });

  it('nests three levels and no more', () => {
    expect(hasCrossClassQuery(translate(nested(3), 'Artist'))).toBe(true);
    expect(catchRefusal(() => translate(nested(4), 'Artist'))).toMatchObject({ code: 'invalid_query' });
  });

  it('asks sixteen times in one query and no more', () => {
    const asked = (times: number) => ({ $or: Array.from({ length: times }, () => inArtist({})) });
    expect(hasCrossClassQuery(translate(asked(16)))).toBe(true);
    expect(codeOf(asked(17))).toEqual(['invalid_query', undefined]);
  });

  it('starts counting depth from zero inside', () => {
    const deep = { $and: [{ $and: [{ $and: [{ title: 'x' }] }] }] };
    const where = { $and: [{ $and: [{ favourite: { $inQuery: { className: 'Artist', where: deep } } }] }] };
    expect(translate(where, 'Artist')).toEqual(where);
  });

  it('lets an operator filter name hidden fields of the other class too', () => {
    expect(translate(inArtist({ fee: 1 }), 'Song', false)).toEqual(inArtist({ fee: 1 }));
  });
});

describe('mapCrossClass', () => {
  const answered = async (where: Where, answers: (query: CrossClassQuery) => Where) => {
    const asked: CrossClassQuery[] = [];
    const mapped = await mapCrossClass(where, (query) => {
      asked.push(query);
      return Promise.resolve(answers(query));
    });
    return { asked, mapped };
  };

  it('leaves a constraint without questions as it is', async () => {
    const where = translate({ $or: [{ title: 'x' }, { meta: { a: 1 } }], artist: 'a1', tags: [] });
    expect((await answered(where, () => ({ never: 1 }))).mapped).toEqual(where);
    expect(hasCrossClassQuery(where)).toBe(false);
  });

  it('puts the answer in the question’s place, beside what else was asked', async () => {
    const where = translate({
      $nor: [{ artist: { $exists: true, $inQuery: { className: 'Artist', where: { name: 'x' } } } }],
      title: { $dontSelect: { query: { className: 'Artist', where: {} }, key: 'name' } },
      $relatedTo: { object: list, key: 'songs' },
    });
    const { asked, mapped } = await answered(where, ({ operator }) => ({ [`by ${operator}`]: 1 }));
    expect(asked).toEqual([
      { operator: '$inQuery', field: 'artist', className: 'Artist', where: { name: 'x' } },
      { operator: '$dontSelect', field: 'title', className: 'Artist', where: {}, key: 'name' },
      { operator: '$relatedTo', object: list, key: 'songs' },
    ]);
    expect(mapped).toEqual({
      $and: [
        { $nor: [{ $and: [{ artist: { $exists: true } }, { 'by $inQuery': 1 }] }] },
        { 'by $dontSelect': 1 },
        { 'by $relatedTo': 1 },
      ],
    });
    expect(hasCrossClassQuery(mapped)).toBe(false);
  });

  it('answers inner questions first', async () => {
    const { asked } = await answered(translate(nested(2), 'Artist'), () => ({ done: 1 }));
    expect(asked.map((query) => 'where' in query && query.where)).toEqual([{ title: 'x' }, { done: 1 }]);
  });
});
