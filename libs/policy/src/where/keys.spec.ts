import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALWAYS_KEEP } from '../model/class-policy.js';
import { rootOf } from '../model/field-names.js';
import { INTERNAL_FIELDS } from '../model/internal-fields.js';
import { music, refusalOf } from '../music.fixture.js';
import { parseKeys } from './keys.js';

const song = music('Song');
const note = music('Note');

describe('parseKeys', () => {
  it.each<[string, unknown, unknown]>([
    ['no keys are the allowlist', undefined, [...(song.readable ?? [])]],
    ['an empty list is no keys', [], [...(song.readable ?? [])]],
    [
      'keys within the allowlist',
      ['title', 'play_count', 'Meta.sub'],
      ['title', 'playCount', 'meta.sub', ...ALWAYS_KEEP],
    ],
    ['keys outside are dropped', ['title', 'royalty', 'royalty.x'], ['title', ...ALWAYS_KEEP]],
    ['keys wholly outside leave the always-kept', ['royalty', 'orgId'], [...ALWAYS_KEEP]],
    ['spellings of one field once', ['play_count', 'playCount'], ['playCount', ...ALWAYS_KEEP]],
  ])('with an allowlist, %s', (_, keys, expected) => {
    expect(parseKeys(keys, song)).toEqual(expected);
  });

  it.each<[string, unknown, unknown]>([
    ['no keys read everything', undefined, undefined],
    ['keys are taken', ['body', 'anything.x'], ['body', 'anything.x', ...ALWAYS_KEEP]],
    [
      'internal keys leave the always-kept, never the whole row',
      ['authData', 'session_token'],
      [...ALWAYS_KEEP],
    ],
  ])('without an allowlist, %s', (_, keys, expected) => {
    expect(parseKeys(keys, note)).toEqual(expected);
  });

  it.each([
    ['text', 'title'],
    ['an object', { title: 1 }],
    ['a number in it', [5]],
    ['an internal name', ['_hashed_password']],
    ['an internal segment', ['profile._rperm']],
    ['an operator', ['$x']],
    ['a blank', ['a b']],
    ['an empty segment', ['a..b']],
    ['an empty name', ['']],
    ['a line break', ['title\n']],
    ['65 names', Array.from({ length: 65 }, (_, i) => `k${i}`)],
    ['a name of 129 characters', ['k'.repeat(129)]],
  ])('refuses %s', (_, keys) => {
    expect(refusalOf(() => parseKeys(keys, note))).toMatchObject({ code: 'invalid_argument' });
  });

  it('lets no internal column out, even when a declaration put it into the allowlist', () => {
    const careless = { ...song, readable: new Set(['title', ...INTERNAL_FIELDS]) };
    expect(parseKeys(undefined, careless)).toEqual(['title', ...ALWAYS_KEEP]);
    expect(parseKeys(['title', 'authData'], careless)).toEqual(['title', ...ALWAYS_KEEP]);
  });

  it('never projects outside the allowlist, and never projects nothing', () => {
    const name = fc.constantFrom(
      'title',
      'play_count',
      'royalty',
      'Royalty',
      'orgId',
      'authData',
      'meta',
      'nope',
    );
    const key = fc.oneof(
      name,
      fc.tuple(name, name).map((pair) => pair.join('.')),
    );
    fc.assert(
      fc.property(fc.array(key, { maxLength: 8 }), (keys) => {
        const projection = parseKeys(keys, song) ?? [];
        expect(projection.length).toBeGreaterThan(0);
        expect(projection.filter((path) => !song.readable?.has(rootOf(path)))).toEqual([]);
      }),
    );
  });
});
