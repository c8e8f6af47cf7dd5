import { describe, expect, it } from 'vitest';
import { scanWhere, translateWhere, type WhereOptions } from './translate-where.js';
import { music, shopReach } from '../music.fixture.js';

const song = (where: unknown, options: Partial<WhereOptions> = {}) =>
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true, ...options });
const note = (where: unknown) =>
  translateWhere(where, music('Note'), shopReach, { strictPointerShapes: true });

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

describe('the size of a constraint', () => {
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`f${index}`, index]));

  it('may hold 1000 fields and operators, and not one more', () => {
    expect(() => scanWhere(fields(1000))).not.toThrow();
    expect(() => scanWhere(fields(1001))).toThrow('Query exceeds 1000 fields and operators');
  });

  it('does not count the values of a list', () => {
    expect(() => scanWhere({ objectId: { $in: Array.from({ length: 5000 }, String) } })).not.toThrow();
  });
});
