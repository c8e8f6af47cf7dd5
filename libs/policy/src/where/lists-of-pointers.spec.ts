import { describe, expect, it } from 'vitest';
import { music, shopReach } from '../music.fixture.js';
import { translateWhere } from './translate-where.js';

const access = { ...music('Song'), lists: new Map([['tags', 'Artist']]) };
const pointer = (objectId: string) => ({ __type: 'Pointer', className: 'Artist', objectId });

describe('a list of pointers whose class the policy declares', () => {
  it.each<[unknown, unknown]>([
    ['a1', pointer('a1')],
    [{ $in: ['a1', pointer('a2')] }, { $in: [pointer('a1'), pointer('a2')] }],
    [{ $all: ['a1'] }, { $all: [pointer('a1')] }],
    [{ $ne: 'Artist$a1' }, { $ne: pointer('a1') }],
  ])('compares %j with its pointers', (written, compared) => {
    const where = translateWhere({ tags: written }, access, shopReach, { strictPointerShapes: true });
    expect(where).toEqual({ tags: compared });
  });

  it('says so where no class is declared and a text looks like an id', () => {
    const notes: string[] = [];
    const note = (text: string) => notes.push(text);
    const ask = (tag: string) =>
      translateWhere({ tags: tag }, music('Song'), shopReach, { strictPointerShapes: true, note });
    expect(ask('electronic')).toEqual({ tags: 'electronic' });
    expect(notes).toEqual([]);
    expect(ask('ZbY7GMCkwM')).toEqual({ tags: 'ZbY7GMCkwM' });
    expect(notes).toEqual([expect.stringContaining('"__type":"Pointer"')]);
  });
});
