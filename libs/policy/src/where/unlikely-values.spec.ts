import { describe, expect, it } from 'vitest';
import { catchRefusal, music, shopReach } from '../music.fixture.js';
import { translateWhere, type WhereOptions } from './translate-where.js';

const ask = (where: unknown, options: Partial<WhereOptions> = {}) =>
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: false, ...options });
const refusedFor = (where: unknown) => catchRefusal(() => ask(where))?.message;

function notesOn(where: unknown, options: Partial<WhereOptions> = {}): string[] {
  const notes: string[] = [];
  ask(where, { ...options, note: (text) => notes.push(text) });
  return notes;
}

describe('a value that no pointer, object or point can equal', () => {
  const byRow = '{"artist":{"$inQuery":{"className":"CLASS","where":{…}}}}';
  it.each<[unknown, string]>([
    [{ artist: 5 }, byRow],
    [{ artist: true }, byRow],
    [{ artist: ['a1'] }, byRow],
    [{ artist: { $ne: 5 } }, byRow],
    [{ artist: { $in: ['a1', 5] } }, byRow],
    [{ artist: { $regex: 'Ann' } }, byRow],
    [{ artist: { name: 'Ann' } }, byRow],
    [{ 'artist.name': 'Ann' }, byRow],
    [{ artist: '' }, 'null finds rows without a value'],
    [{ meta: 'x' }, 'meta.NAME'],
    [{ meta: { $in: [1] } }, 'meta.NAME'],
    [{ place: 'Berlin' }, '{"$nearSphere":{"__type":"GeoPoint"'],
    [{ place: { latitude: 1, longitude: 2 } }, '{"$nearSphere":{"__type":"GeoPoint"'],
    [{ place: { $ne: [1, 2] } }, '{"$nearSphere":{"__type":"GeoPoint"'],
    [{ title: ['x', 'y'] }, '{"$in":[…]}'],
    [{ releasedOn: { day: 1, month: 2 } }, '{"$gte":"2024-01-31","$lt":"2024-02-01"}'],
  ])('is refused with what to write instead: %j', (where, instead) => {
    expect(refusedFor(where)).toContain(instead);
  });

  it.each([
    { artist: null },
    { artist: { $in: ['a1', null] } },
    { artist: { $exists: false } },
    { meta: null },
    { meta: { $ne: null } },
    { place: { __type: 'GeoPoint', latitude: 1, longitude: 2 } },
  ])('is not one that fits, or absence: %j', (where) => {
    expect(notesOn(where)).toEqual([]);
  });

  it.each([
    { artist: { $regex: '^DE-' } },
    { artist: { $all: [['a1']] } },
    { artist: ['a1'] },
    { artist: 5 },
  ])('is none that a reference of a plain class may hold: %j', (where) => {
    const song = music('Song');
    if (!song.schema) throw new Error('the class has a schema');
    const plain = { ...song, schema: { ...song.schema, storage: 'plain' as const } };
    expect(() => translateWhere(where, plain, shopReach, { strictPointerShapes: false })).not.toThrow();
  });
});

describe('an operator of another language', () => {
  it.each([
    [{ title: { contains: 'x' } }, "'contains' is no operator: write $regex"],
    [{ title: { like: '%x' } }, "'like' is no operator: write $regex"],
    [{ title: { starts_with: 'x' } }, "'starts_with' is no operator: write $regex"],
    [{ title: { '!=': 'x' } }, "'!=' is no operator: write $ne"],
    [{ playCount: { '>=': 5 } }, "'>=' is no operator: write $gte"],
    [
      { releasedOn: { between: ['2024-01-01', '2024-02-01'] } },
      "'between' is no operator: write $gte and $lte",
    ],
    [{ releasedOn: { from: '2024-01-01', to: '2024-02-01' } }, "'from' is no operator: write $gte"],
    [{ title: { not: { $eq: 'x' } } }, `'not' is no operator: write $ne, $nin or {"$nor":[{…}]}`],
    [{ OR: [{ title: 'x' }] }, "'OR' is no operator: write '$or'"],
    [{ title: { $isNull: true } }, 'Write null, as the value of the field, instead'],
    [{ title: { isNull: true } }, 'write null, as the value of the field, instead'],
    [
      { playCount: { size: 2 } },
      "'playCount' is a number, and size asks for lists: compare it with a number",
    ],
    [{ title: { elemMatch: { a: 1 } } }, "'title' is a text, and elemMatch asks for lists"],
    [{ tags: { $size: 2 } }, '$size in a $match of aggregate, instead'],
  ])('is refused with the one of this: %j', (where, instead) => {
    expect(refusedFor(where)).toContain(instead);
  });

  it('is the name of a member in an object', () => {
    expect(refusedFor({ meta: { contains: 'x' } })).toBeUndefined();
    expect(refusedFor({ meta: { from: { $gt: 1 } } })).toBeUndefined();
  });
});

describe('a value that is most likely not meant as it is written', () => {
  const asId = (text: string) => `'${text}' was compared as the id of the row that 'artist' points to`;
  const ofOther = (name: string) => `'artist' points to rows of another class than '${name}'`;
  it.each<[unknown, string]>([
    [{ artist: 'Ann Smith' }, asId('Ann Smith')],
    [{ artist: 'ann@example.com' }, asId('ann@example.com')],
    [{ artist: 'Madonna' }, asId('Madonna')],
    [{ artist: { $ne: 'Ann Smith' } }, asId('Ann Smith')],
    [{ artist: { $in: ['a1', 'Ann Smith'] } }, asId('Ann Smith')],
    [{ artist: 'Playlist$p1' }, ofOther('Playlist')],
    [{ artist: { $ne: 'Playlist$p1' } }, ofOther('Playlist')],
    [{ artist: { __type: 'Pointer', className: 'Playlist', objectId: 'p1' } }, ofOther('Playlist')],
    [{ artist: { $in: ['a1', { __type: 'Pointer', className: 'Note', objectId: 'n1' }] } }, ofOther('Note')],
    [{ artist: { $inQuery: { className: 'Playlist', where: {} } } }, ofOther('Playlist')],
    [{ artist: { $notInQuery: { className: 'Playlist', where: {} } } }, ofOther('Playlist')],
    [{ objectId: 'Song$s1' }, `'objectId' is the id alone: write "s1"`],
    [{ title: '%part%' }, `'title' was compared with the whole text '%part%'`],
    [{ title: 'part*' }, `'title' was compared with the whole text 'part*'`],
    [{ title: '/part/i' }, `'title' was compared with the whole text '/part/i'`],
    [{ title: '{"$regex":"x"}' }, `'title' was compared with the text of a condition`],
    [{ title: { $regex: '/part/i' } }, "The pattern for 'title' has slashes around it"],
    [{ tags: ['a', 'b'] }, "A list is compared with 'tags' as a whole"],
    [{ 'meta.city': { like: '%x' } }, "write its path: 'meta.city.like'"],
    [{ 'title.x': 1 }, "'title' is a text, and has no member 'x'"],
  ])('is compared, and the answer says as what: %j', (where, note) => {
    expect(notesOn(where)).toEqual([expect.stringContaining(note)]);
  });

  it.each([
    { artist: 'a1' },
    { artist: 'mrGyBE3T6h' },
    { artist: '507f1f77bcf86cd799439011' },
    { artist: 'Artist$a1' },
    { artist: { __type: 'Pointer', className: 'Artist', objectId: 'a1' } },
    { artist: { $inQuery: { className: 'Artist', where: {} } } },
    { curator: 'Playlist$p1' },
    { title: 'Ann Smith' },
    { title: 'a/b' },
    { title: { $regex: '^part' } },
    { tags: [] },
    { tags: { $all: ['a'] } },
  ])('is no other one: %j', (where) => {
    expect(notesOn(where)).toEqual([]);
  });

  it('names no class behind a pointer', () => {
    for (const where of [
      { artist: 'Ann Smith' },
      { artist: { $in: ['Ann Smith'] } },
      { artist: 'Playlist$p1' },
    ])
      expect(notesOn(where).join()).not.toContain('Artist');
    for (const where of [{ artist: 5 }, { artist: ['x'] }]) expect(refusedFor(where)).not.toContain('Artist');
  });

  it('is none that an operator or a claim has written', () => {
    const literals = new Set(['Ann Smith', '%part%']);
    expect(notesOn({ artist: 'Ann Smith', title: '%part%' }, { literals })).toEqual([]);
  });
});
