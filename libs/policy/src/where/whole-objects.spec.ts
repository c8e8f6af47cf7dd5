import { describe, expect, it } from 'vitest';
import { music, shopReach } from '../music.fixture.js';
import { translateWhere } from './translate-where.js';

function notesOn(where: object): string[] {
  const notes: string[] = [];
  const note = (text: string) => notes.push(text);
  translateWhere(where, music('Song'), shopReach, { strictPointerShapes: true, note });
  return notes;
}

describe('an object beside a column of objects', () => {
  it.each([
    [{ meta: { bpm: 120 } }, 'meta.bpm'],
    [{ meta: { $eq: { bpm: 120, key: 'a' } } }, 'meta.bpm'],
    [{ tags: { $in: ['rock', { name: 'pop' }] } }, 'tags.name'],
    [{ $or: [{ tags: { name: 'pop' } }, { title: 'x' }] }, 'tags.name'],
  ])('is compared whole, and the answer says how to ask for a member: %j', (where, path) => {
    expect(notesOn(where)).toEqual([expect.stringContaining(`write its path: '${path}'`)]);
  });

  it('gets a note with the form of dates inside an object', () => {
    expect(notesOn({ meta: { cut: { on: '2026-01-01' } } })).toEqual([
      expect.stringContaining("write its path: 'meta.cut'"),
      expect.stringContaining('For a date write {"__type":"Date"'),
    ]);
  });

  it.each([
    { 'meta.bpm': 120 },
    { meta: {} },
    { meta: { bpm: { $gt: 100 } } },
    { meta: null },
    { tags: 'rock' },
    { title: 'x' },
  ])('is not there in %j', (where) => {
    expect(notesOn(where)).toEqual([]);
  });
});
