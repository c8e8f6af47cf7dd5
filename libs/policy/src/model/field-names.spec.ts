import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { collidingPairs, columnName, columnNames } from './column-names.fixture.js';
import {
  CREDENTIAL_FIELDS,
  FieldNames,
  hasInternalSegment,
  INTERNAL_FIELDS,
  isInternalField,
  toLowerCamel,
} from './field-names.js';

const BUILT_IN = ['objectId', 'createdAt', 'updatedAt', 'ACL'];
const namesOf = (columns: readonly string[], aliases: Record<string, string> = {}) =>
  new FieldNames(
    new Map(Object.entries(aliases)),
    new Map([...BUILT_IN, ...columns].map((name) => [name, true])),
  );

describe('a written name', () => {
  it.each<[string, string, readonly string[], Record<string, string>, string | null]>([
    ['is the column of exactly that name', 'full_text', ['full_text'], {}, 'full_text'],
    ['is it beside its lowerCamel form', 'created_on', ['createdOn', 'created_on'], {}, 'created_on'],
    ['is it in capitals', 'SSN', ['SSN', 'ssn', 'sSN'], {}, 'SSN'],
    ['is it with a leading capital', 'Title', ['title', 'Title'], {}, 'Title'],
    ['is it with a digit', 'line_2', ['line2', 'line_2'], {}, 'line_2'],
    ['is it before an alias', 'text', ['text', 'full_text'], { text: 'full_text' }, 'text'],
    ['is a column of every class', 'ACL', [], {}, 'ACL'],
    ['is else what its alias says', 'body', ['full_text'], { body: 'full_text' }, 'full_text'],
    ['is else what the alias of its lowerCamel form says', 'the_body', ['T'], { theBody: 'T' }, 'T'],
    ['is else the lowerCamel form', 'full_text', ['fullText'], {}, 'fullText'],
    ['is else the lowerCamel form of capitals', 'PlayCount', ['playCount'], {}, 'playCount'],
    ['is else that of a built-in column', 'created_at', [], {}, 'createdAt'],
    ['is never the snake form of a camel name', 'fullText', ['full_text'], {}, null],
    ['is never a column in other capitals', 'ssn', ['SSN'], {}, null],
    ['is nothing where there is neither', 'full_text', ['text'], {}, null],
    ['is nothing where its alias has no column', 'body', ['Body'], { body: 'gone' }, null],
  ])('%s', (_, written, columns, aliases, expected) => {
    expect(namesOf(columns, aliases).column(written)).toBe(expected);
  });

  it('that has no column stays as it was written, or as its alias says', () => {
    expect(namesOf([]).wireName('full_text')).toBe('full_text');
    expect(namesOf([]).wireName('SSN')).toBe('SSN');
    expect(namesOf([], { body: 'full_text' }).wireName('body')).toBe('full_text');
  });

  it('keeps what is behind its first dot', () => {
    expect(namesOf(['full_text']).wirePath('full_text.a_b.C')).toBe('full_text.a_b.C');
    expect(namesOf(['fullText']).wirePath('full_text.a_b.C')).toBe('fullText.a_b.C');
  });
});

describe('in any class', () => {
  it('every column is named by its own name', () => {
    fc.assert(
      fc.property(columnNames, (columns) => {
        expect(columns.map((name) => namesOf(columns).wireName(name))).toEqual(columns);
      }),
    );
  });

  it('a name means a column of the class, its own or the lowerCamel form, or nothing', () => {
    fc.assert(
      fc.property(columnNames, columnName, (columns, written) => {
        const expected = columns.includes(written)
          ? written
          : (columns.find((name) => name === toLowerCamel(written)) ?? null);
        expect(namesOf(columns).column(written)).toBe(expected);
      }),
    );
  });

  it('adding a column changes the meaning of no name but its own and those that had none', () => {
    fc.assert(
      fc.property(columnNames, columnName, columnName, (columns, more, written) => {
        const before = namesOf(columns).column(written);
        const after = namesOf([...columns, more]).column(written);
        if (before !== null && after !== before) expect(more).toBe(written);
      }),
    );
  });

  it('colliding columns are among those that are tried', () => {
    const classes = fc.sample(columnNames, { seed: 1, numRuns: 200 });
    const pairs = new Set(classes.flatMap(collidingPairs).map((pair) => [...pair].sort().join(' ')));
    for (const pair of ['created_on createdOn', 'SSN ssn', 'SSN sSN', 'fullText full_text', 'line2 line_2'])
      expect([...pairs]).toContain(pair.split(' ').sort().join(' '));
  });
});

describe('internal fields', () => {
  it.each([...INTERNAL_FIELDS, '_auth_data_facebook', 'auth_data', 'AuthData', 'Session_Token'])(
    'knows %s in any position of a path',
    (name) => {
      expect(isInternalField(name)).toBe(true);
      expect([name, `a.${name}`, `${name}.b`, `a.${name}.b`].every(hasInternalSegment)).toBe(true);
    },
  );

  it.each([
    'token',
    'password_hint',
    '_p_author',
    '_id',
    '_created_at',
    'aclNote',
    'auth',
    'data._auth',
    '__proto',
    '',
  ])('leaves %j to the class’s own rules', (name) => {
    expect(hasInternalSegment(name)).toBe(false);
  });

  it('counts row rights as internal, but not as credentials', () => {
    expect(
      ['_rperm', '_wperm', '_acl', '_tombstone'].filter((name) => CREDENTIAL_FIELDS.includes(name)),
    ).toEqual([]);
  });
});
