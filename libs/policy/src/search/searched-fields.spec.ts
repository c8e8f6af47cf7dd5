import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Refused, refusals } from '#agent';
import type { ClassAccess } from '../model/class-access.js';
import type { FieldSchema, FieldType } from '../model/class-schema.js';
import { FieldNames } from '../model/field-names.js';
import { allTextFields, facetField, searchedField, stringFields } from './searched-fields.js';

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
        hiddenOn: () => new Set(hidden),
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
          for (const judge of [searchedField, facetField]) {
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
    expect(codeOf(() => searchedField(name, access(null), 'fields'))).toBe(code);
  });

  it('tells a denied field from a protected one', () => {
    expect(codeOf(() => searchedField('secret', access(['title']), 'fields'))).toBe('field_denied');
    expect(codeOf(() => searchedField('secret', access(['title', 'secret'], ['secret']), 'fields'))).toBe(
      'protected_field_ref',
    );
  });

  it('takes any spelling, and paths into objects', () => {
    expect(searchedField('Title', access(null), 'fields')).toBe('title');
    expect(searchedField('extra.note', access(null), 'fields')).toBe('extra.note');
    expect(facetField('price', access(null), 'facets')).toBe('price');
  });
});
