import { describe, expect, it } from 'vitest';
import { catchRefusal, music, shopReach } from '../music.fixture.js';
import { validatePipeline } from './validate-pipeline.js';
import { walkPipeline } from './walk-pipeline.js';

function notesOn(pipeline: unknown, className = 'Song'): string[] {
  const notes: string[] = [];
  walkPipeline(validatePipeline(pipeline), music(className), shopReach, { note: (text) => notes.push(text) });
  return notes;
}
const refusedFor = (pipeline: unknown) => catchRefusal(() => notesOn(pipeline))?.message;
const match = (expression: unknown) => [{ $match: { $expr: expression } }];
const compute = (expression: unknown) => [{ $project: { x: expression } }];
const joined = (...operands: readonly string[]) => [
  {
    $lookup: {
      from: 'Artist',
      let: { who: '$artist' },
      pipeline: [{ $match: { $expr: { $eq: operands } } }],
      as: 'artists',
    },
  },
];

const ids = { localField: 'artist', foreignField: 'objectId', as: 'x' };
const artists = [
  {
    $lookup: {
      ...ids,
      from: 'Artist',
      pipeline: [{ $lookup: { from: 'Note', localField: 'objectId', foreignField: 'song', as: 'y' } }],
    },
  },
];

describe('an operand that is most likely not meant as it is written', () => {
  it.each<[string, unknown, string]>([
    ['an id beside a pointer', match({ $eq: ['$artist', 'a1'] }), "'$artist' is 'CLASS$ID'"],
    ['an id in front of a pointer', compute({ $ne: ['a1', '$artist'] }), "'$artist' is 'CLASS$ID'"],
    ['a name in a list beside one', match({ $in: ['$artist', ['a1', null]] }), "'$artist' is 'CLASS$ID'"],
    ['an id column beside one', joined('$objectId', '$$who'), "'$$who' is 'CLASS$ID'"],
    ['the same the other way round', joined('$$who', '$objectId'), "'$$who' is 'CLASS$ID'"],
    ['a column without its $ as a key', [{ $group: { _id: 'genre' } }], 'write "$genre"'],
    ['one within a key', [{ $group: { _id: { g: 'genre', a: '$artist' } } }], 'write "$genre"'],
    ['a column without its $ as a computed value', compute('genre'), 'write "$genre"'],
    ['one as an added field', [{ $addFields: { x: 'genre' } }], 'write "$genre"'],
    ['a place in a list as a path', compute('$tags.0'), 'write {"$arrayElemAt":["$tags",0]}'],
    [
      'a list that is asked of a text',
      [{ $match: { title: { $size: 2 } } }],
      "'title' is a text, and $size asks",
    ],
    ['entries of a text', [{ $match: { title: { $elemMatch: { $eq: 'a' } } } }], "'title' is a text, and"],
    ['a pointer to another class', [{ $match: { artist: 'Note$n1' } }], "another class than 'Note'"],
    ['a join with another class', [{ $lookup: { ...ids, from: 'Note' } }], "another class than 'Note'"],
    [
      'a join with pointers to another class',
      [{ $lookup: { from: 'Note', localField: 'objectId', foreignField: 'song', as: 'x' } }, ...artists],
      "another class than 'Artist'",
    ],
    [
      'a format of another language',
      compute({ $dateToString: { date: '$releasedOn', format: 'YYYY-MM' } }),
      "'YYYY-MM' has no part of the date in it",
    ],
  ])('gets a note: %s', (_, pipeline, note) => {
    expect(notesOn(pipeline)).toEqual([expect.stringContaining(note)]);
  });

  it.each<[string, unknown]>([
    ['a pointer as it is stored', match({ $eq: ['$artist', 'Artist$a1'] })],
    ['a join with the class of the pointer', [{ $lookup: { ...ids, from: 'Artist' } }]],
    [
      'a join by a computed field',
      [{ $addFields: { artist: '$title' } }, { $lookup: { ...ids, from: 'Note' } }],
    ],
    ['a list asked of a list', [{ $match: { tags: { $size: 2 } } }]],
    ['a place in a list of a filter', [{ $match: { 'tags.0': 'a' } }]],
    ['a text that names no column', compute('none')],
    ['absence', match({ $eq: ['$artist', null] })],
    ['two pointers', match({ $eq: ['$artist', '$curator'] })],
    ['a pointer beside a text of unknown content', match({ $eq: ['$artist', '$meta.x'] })],
    ['a key that names no column', [{ $group: { _id: 'all' } }]],
    ['a key that names a column which may not be read', [{ $group: { _id: 'royalty' } }]],
    ['a format with parts', compute({ $dateToString: { date: '$releasedOn', format: '%Y-%m' } })],
    ['the format of the database', compute({ $dateToString: { date: '$releasedOn' } })],
    ['a unit', compute({ $dateTrunc: { date: '$releasedOn', unit: 'quarter' } })],
  ])('is no other one: %s', (_, pipeline) => {
    expect(notesOn(pipeline)).toEqual([]);
  });
});

it('is the stored column of a pointer in a join by ids', () => {
  const join = { from: 'Song', as: 'songs' };
  for (const sides of [
    { localField: '_p_song', foreignField: 'objectId' },
    { localField: '_p_song', foreignField: '_id' },
  ])
    expect(notesOn([{ $lookup: { ...join, ...sides } }], 'Note')).toEqual([
      "'_p_song' is 'CLASS$ID', and joins no ids: write 'song'",
    ]);
  expect(notesOn([{ $lookup: { ...join, localField: 'song', foreignField: 'objectId' } }], 'Note')).toEqual(
    [],
  );
});

describe('what the database would refuse without saying why', () => {
  const between = { startDate: '$releasedOn', endDate: '$$NOW' };
  it.each<[string, unknown, string]>([
    ['a unit in the plural', compute({ $dateDiff: { ...between, unit: 'days' } }), 'write "day"'],
    [
      'no unit',
      compute({ $dateAdd: { startDate: '$releasedOn', unit: 'fortnight', amount: 1 } }),
      'write one of year, quarter',
    ],
    [
      'a count of something',
      [{ $group: { _id: '$genre', n: { $count: 1 } } }],
      'write {"$count":{}}, or {"$sum":1}',
    ],
  ])('is refused with what to write: %s', (_, pipeline, instead) => {
    expect(refusedFor(pipeline)).toContain(instead);
  });
});
