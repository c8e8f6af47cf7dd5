import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refusals, Refused } from '#core';
import type { ClassAccess } from '../model/class-access.js';
import type { FieldSchema, FieldType } from '../model/class-schema.js';
import { ALWAYS_KEEP, FieldNames, INTERNAL_FIELDS, takeRoot } from '../model/field-names.js';
import { music, catchRefusal } from '../music.fixture.js';
import {
  allTextFields,
  facetField,
  parseKeys,
  parseOrder,
  checkSearchedField,
  stringFields,
} from './requested-fields.js';

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
    ['a comma', ['a,b']],
    ['an empty segment', ['a..b']],
    ['an empty name', ['']],
    ['a line break', ['title\n']],
    ['65 names', Array.from({ length: 65 }, (_, i) => `k${i}`)],
    ['a name of 129 characters', ['k'.repeat(129)]],
  ])('refuses %s', (_, keys) => {
    expect(catchRefusal(() => parseKeys(keys, note))).toMatchObject({ code: 'invalid_argument' });
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
        expect(projection.filter((path) => !song.readable?.has(takeRoot(path)))).toEqual([]);
      }),
    );
  });
});

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
    'a$b',
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
    expect(catchRefusal(() => parseOrder(order, music('Note')))).toMatchObject({ code: 'invalid_argument' });
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
    expect(catchRefusal(() => parseOrder(order, music('Note')))).toMatchObject({ code: 'invalid_argument' });
  });

  it.each(['royalty', '-royalty', 'Royalty', 'royalty.x', 'title,royalty', 'org_id'])(
    'refuses to sort by hidden %s',
    (order) => {
      expect(catchRefusal(() => parseOrder(order, song))).toMatchObject({
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
    const refusal = catchRefusal(() => parseOrder(order, music(className)));
    expect(refusal?.message).toMatch(message);
  });

  it('sorts by paths into lists of objects, and into columns that nobody declared', () => {
    expect(parseOrder('tags.name', song)).toEqual([{ field: 'tags.name', descending: false }]);
    expect(parseOrder('loose.inner', music('Note'))).toEqual([{ field: 'loose.inner', descending: false }]);
  });

  it.each([
    ['title desc', "write '-title' for 'title desc'"],
    ['objectId,playCount DESCENDING', "write '-playCount'"],
    ['title asc', "write 'title' for"],
  ])('tells how a direction is written: %s', (order, message) => {
    for (const className of ['Song', 'Note'])
      expect(catchRefusal(() => parseOrder(order, music(className)))).toMatchObject({
        code: 'invalid_argument',
        message: expect.stringContaining(message) as string,
      });
  });

  it('sorts by at most 32 fields', () => {
    const fields = Array.from({ length: 33 }, (_, i) => `f${i}`);
    expect(parseOrder(fields.slice(1).join(','), music('Note'))).toHaveLength(32);
    expect(catchRefusal(() => parseOrder(fields.join(','), music('Note')))).toMatchObject({
      code: 'invalid_argument',
    });
  });
});

const FIELDS: Readonly<Record<string, FieldType>> = {
  objectId: 'String',
  title: 'String',
  tags: 'Array',
  extra: 'Object',
  price: 'Number',
  made: 'Date',
  author: 'Pointer',
  guests: 'Array',
  _hashed_password: 'String',
  sessionToken: 'String',
  secret: 'String',
};

function access(readable: readonly string[] | null, hidden: readonly string[] = []): ClassAccess {
  const fields = new Map<string, FieldSchema>(Object.entries(FIELDS).map(([name, type]) => [name, { type }]));
  const shown = readable && readable.filter((name) => !hidden.includes(name));
  return {
    className: 'Post',
    schema: { className: 'Post', fields, indexes: [], classLevelPermissions: null },
    names: new FieldNames(),
    readable: shown && new Set(shown),
    withheld: new Map([['guests', { className: 'Vault', refusal: refusals.hiddenClass('Vault') }]]),
    ...(hidden.length > 0 && {
      guarded: {
        hidden: new Set(hidden),
        perRow: false,
        deciders: [],
        listHidden: () => new Set(hidden),
        fetchable: null,
      },
    }),
  };
}

const codeOf = (work: () => unknown) => {
  try {
    work();
    return null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return error.refusal.details?.kind ?? error.refusal.code;
  }
};

describe('what a search looks through', () => {
  it('is every readable text, never an internal column, a pointer or what leads into a withheld class', () => {
    expect(allTextFields(access(null))).toEqual(['title', 'tags', 'secret']);
    expect(allTextFields(access(['title', 'guests', 'author', 'price']))).toEqual(['title']);
    expect(stringFields(access(null))).toEqual(['title', 'secret']);
    expect(codeOf(() => allTextFields(access(['price'])))).toBe('invalid_argument');
  });

  it('never goes beyond an allowlist', () => {
    const names = Object.keys(FIELDS);
    fc.assert(
      fc.property(
        fc.subarray(names),
        fc.subarray(names),
        fc.constantFrom(...names, 'title.x', '*', 'ti*', 'nope'),
        (readable, hidden, asked) => {
          const own = access(readable, hidden);
          const open = (name: string) => readable.includes(name) && !hidden.includes(name);
          try {
            for (const name of allTextFields(own)) expect(open(name)).toBe(true);
          } catch (error) {
            expect(error).toBeInstanceOf(Refused);
          }
          for (const judge of [checkSearchedField, facetField]) {
            if (codeOf(() => judge(asked, own, 'fields')) === null)
              expect(open(asked.split('.')[0] as string)).toBe(true);
          }
        },
      ),
    );
  });

  it.each([
    ['_hashed_password', 'security_blocked'],
    ['sessionToken', 'security_blocked'],
    ['extra._rperm', 'security_blocked'],
    ['$title', 'invalid_query'],
    ['', 'invalid_query'],
    ['price', 'invalid_argument'],
    ['author', 'invalid_argument'],
    ['nope', 'invalid_argument'],
    ['*', 'invalid_argument'],
    ['guests', 'hidden_class'],
    ['guests.name', 'hidden_class'],
  ])('refuses %j: %s', (name, code) => {
    expect(codeOf(() => checkSearchedField(name, access(null), 'fields'))).toBe(code);
  });

  it('distinguishes a denied field from a protected one', () => {
    expect(codeOf(() => checkSearchedField('secret', access(['title']), 'fields'))).toBe('field_denied');
    expect(
      codeOf(() => checkSearchedField('secret', access(['title', 'secret'], ['secret']), 'fields')),
    ).toBe('protected_field_ref');
  });

  it('takes any spelling, and paths into objects', () => {
    expect(checkSearchedField('Title', access(null), 'fields')).toBe('title');
    expect(checkSearchedField('extra.note', access(null), 'fields')).toBe('extra.note');
    expect(facetField('price', access(null), 'facets')).toBe('price');
  });
});
