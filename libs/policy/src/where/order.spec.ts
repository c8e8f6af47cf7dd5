import { describe, expect, it } from 'vitest';
import { music, refusalOf } from '../music.fixture.js';
import { parseOrder } from './order.js';

const song = music('Song');

describe('parseOrder', () => {
  it.each<[string, unknown, unknown]>([
    ['nothing', undefined, []],
    ['empty text', '', []],
    ['one field', 'title', [{ field: 'title', descending: false }]],
    [
      'several fields in their order',
      '-createdAt, play_count',
      [
        { field: 'createdAt', descending: true },
        { field: 'playCount', descending: false },
      ],
    ],
    ['an alias', '-externalStatus', [{ field: 'ExtStatus', descending: true }]],
    ['a path', 'Meta.inner_key', [{ field: 'meta.inner_key', descending: false }]],
    [
      'a field named twice by its first mention',
      'play_count,-playCount',
      [{ field: 'playCount', descending: false }],
    ],
  ])('reads %s', (_, order, expected) => {
    expect(parseOrder(order, song)).toEqual(expected);
  });

  it.each([
    5,
    ['title'],
    'a b',
    '--title',
    '+title',
    '$x',
    '_id',
    'title,',
    ',',
    '-',
    'a..b',
    'meta._x',
    'a.',
    `a${'b'.repeat(128)}`,
  ])('refuses %j', (order) => {
    expect(refusalOf(() => parseOrder(order, music('Note')))).toMatchObject({ code: 'invalid_argument' });
  });

  it.each([
    '_rperm',
    'authData',
    'sessionToken',
    'session_token',
    '-auth_data',
    'ACL',
    'meta._rperm',
    'meta.authData.x',
  ])('refuses to sort by internal %s', (order) => {
    expect(refusalOf(() => parseOrder(order, music('Note')))).toMatchObject({ code: 'invalid_argument' });
  });

  it.each(['royalty', '-royalty', 'Royalty', 'royalty.x', 'title,royalty', 'org_id'])(
    'refuses to sort by hidden %s',
    (order) => {
      expect(refusalOf(() => parseOrder(order, song))).toMatchObject({
        code: 'access_denied',
        details: { kind: 'field_denied' },
      });
    },
  );

  it.each([
    ['a pointer', 'artist.name', /points to another class/],
    ['a pointer of unknown class', 'curator.objectId', /points to another class/],
    ['text', 'title.x', /'title' is a String/],
    ['a number', 'play_count.x', /'playCount' is a Number/],
    ['a date', 'createdAt.x', /'createdAt' is a Date/],
    ['a place', 'place.latitude', /'place' is a GeoPoint/],
    ['a pointer of a class that shows all its fields', 'song.royalty', /points to another class/, 'Note'],
    ['a relation', 'songs.title', /points to another class/, 'Playlist'],
  ])('refuses a path into %s', (_, order, message, className = 'Song') => {
    const refusal = refusalOf(() => parseOrder(order, music(className)));
    expect(refusal?.message).toMatch(message);
  });

  it('sorts by paths into lists of objects, and into columns that nobody declared', () => {
    expect(parseOrder('tags.name', song)).toEqual([{ field: 'tags.name', descending: false }]);
    expect(parseOrder('loose.inner', music('Note'))).toEqual([{ field: 'loose.inner', descending: false }]);
  });

  it('sorts by at most 32 fields', () => {
    const fields = Array.from({ length: 33 }, (_, i) => `f${i}`);
    expect(parseOrder(fields.slice(1).join(','), music('Note'))).toHaveLength(32);
    expect(refusalOf(() => parseOrder(fields.join(','), music('Note')))).toMatchObject({
      code: 'invalid_argument',
    });
  });
});
