import { Long } from 'bson';
import { describe, expect, it } from 'vitest';
import type { Document } from '../bson/document.js';
import type { QueryContext } from '../query/context.js';
import { compileFilter } from '../query/filter.js';
import { compileProjection } from './projection.js';

import fc from 'fast-check';

const ctx: QueryContext = { tick: () => undefined, now: new Date(0) };
const project = (doc: Document, spec: Document, filter?: Document): Document =>
  compileProjection(spec, ctx, filter && compileFilter(filter, ctx))(doc);

/** JSON text compares field order too. */
const text = (doc: Document): string => JSON.stringify(doc);

describe('a projection', () => {
  it.each([
    ['keeps document order with _id first', { z: 1, a: 2, _id: 1 }, { a: 1, z: 1 }, { _id: 1, z: 1, a: 2 }],
    ['leaves _id out when told', { _id: 1, a: 1, b: 2 }, { _id: 0, a: 1 }, { a: 1 }],
    ['excludes fields', { _id: 1, a: 1, b: 2 }, { a: 0 }, { _id: 1, b: 2 }],
    ['excludes nothing but _id', { _id: 1, a: 1 }, { _id: 0 }, { a: 1 }],
    ['includes nothing but _id', { _id: 1, a: 1 }, { _id: 1 }, { _id: 1 }],
    [
      'reads longs and booleans as flags',
      { _id: 1, a: 1, b: 2 },
      { a: true, b: Long.ONE },
      { _id: 1, a: 1, b: 2 },
    ],
    ['includes below documents', { _id: 1, a: { b: 1, c: 2 } }, { 'a.b': 1 }, { _id: 1, a: { b: 1 } }],
    [
      'includes below every array element',
      { _id: 1, a: [{ b: 1, c: 2 }, 5, { c: 3 }] },
      { 'a.b': 1 },
      { _id: 1, a: [{ b: 1 }, {}] },
    ],
    [
      'excludes below every array element',
      { _id: 1, a: [{ b: 1, c: 2 }, 5] },
      { 'a.b': 0 },
      { _id: 1, a: [{ c: 2 }, 5] },
    ],
    ['drops a scalar below which a field is wanted', { _id: 1, a: 5 }, { 'a.b': 1 }, { _id: 1 }],
    [
      'reads nested objects as paths',
      { _id: 1, a: { b: 1, c: 2 } },
      { a: { b: 1 } },
      { _id: 1, a: { b: 1 } },
    ],
    [
      'computes fields after the others',
      { _id: 1, a: 2 },
      { c: { $add: ['$a', 1] }, a: 1 },
      { _id: 1, a: 2, c: 3 },
    ],
    [
      'computes fields that there are after the others',
      { _id: 1, a: 2, c: 1 },
      { a: { $add: ['$a', 1] }, c: 1 },
      { _id: 1, c: 1, a: 3 },
    ],
    [
      'shows an element of an array after the others',
      { _id: 1, a: [{ x: 2 }], c: 1 },
      { a: { $elemMatch: { x: 2 } }, c: 1 },
      { _id: 1, c: 1, a: [{ x: 2 }] },
    ],
    ['copies a field under another name', { _id: 1, a: 2 }, { b: '$a' }, { _id: 1, b: 2 }],
    ['leaves out what is missing', { _id: 1 }, { b: '$x' }, { _id: 1 }],
    [
      'slices an array and keeps the rest',
      { _id: 1, a: [1, 2, 3], b: 1 },
      { a: { $slice: 1 } },
      { _id: 1, a: [1], b: 1 },
    ],
    ['slices from the end', { _id: 1, a: [1, 2, 3] }, { a: { $slice: -2 } }, { _id: 1, a: [2, 3] }],
    ['slices by skip and limit', { _id: 1, a: [1, 2, 3] }, { a: { $slice: [1, 1] } }, { _id: 1, a: [2] }],
    [
      'slices within an inclusion',
      { _id: 1, a: [1, 2], b: 1, c: 1 },
      { b: 1, a: { $slice: 1 } },
      { _id: 1, a: [1], b: 1 },
    ],
    [
      'keeps the first element $elemMatch accepts, and nothing else',
      { _id: 1, a: [{ x: 1 }, { x: 2 }], b: 1 },
      { a: { $elemMatch: { x: 2 } } },
      { _id: 1, a: [{ x: 2 }] },
    ],
    [
      'leaves out an array $elemMatch accepts nothing of',
      { _id: 1, a: [{ x: 1 }] },
      { a: { $elemMatch: { x: 2 } } },
      { _id: 1 },
    ],
    ['changes nothing when empty', { _id: 1, a: 1 }, {}, { _id: 1, a: 1 }],
  ] as [string, Document, Document, Document][])('%s', (_title, doc, spec, result) => {
    expect(text(project(doc, spec))).toBe(text(result));
  });

  it.each([
    ['a value', { _id: 1, a: [1, 5] }, { a: 5 }, { 'a.$': 1 }, { _id: 1, a: [5] }],
    [
      'a field below',
      { _id: 1, a: [{ x: 1 }, { x: 2 }] },
      { 'a.x': 2 },
      { 'a.$': 1 },
      { _id: 1, a: [{ x: 2 }] },
    ],
    [
      'an array below a document',
      { _id: 1, o: { a: [1, 5] } },
      { 'o.a': 5 },
      { 'o.a.$': 1 },
      { _id: 1, o: { a: [5] } },
    ],
  ] as [string, Document, Document, Document, Document][])(
    'keeps the element that matched by %s',
    (_title, doc, filter, spec, result) => {
      expect(project(doc, spec, filter)).toEqual(result);
    },
  );

  it.each([
    ['a path and one below it', { a: 1, 'a.b': 1 }, 31249],
    ['a path below one', { 'a.b': 1, a: 1 }, 31250],
    ['exclusion in an inclusion', { a: 1, b: 0 }, 31254],
    ['inclusion in an exclusion', { a: 0, b: 1 }, 31253],
    ['a computed field in an exclusion', { a: 0, b: '$c' }, 31252],
    ['an empty object', { a: {} }, 51270],
    ['an empty name', { '': 1 }, 40352],
    ['a trailing dot', { 'a.': 1 }, 40353],
    ['a dollar in a name', { 'a.$b': 1 }, 16410],
    ['$elemMatch on a nested path', { 'a.b': { $elemMatch: { x: 1 } } }, 31275],
    ['a positional field with a value', { 'a.$': 'x' }, 31308],
    ['an operator beside $elemMatch', { a: { $elemMatch: { x: 1 }, $slice: 1 } }, 16410],
    ['$expr of an element', { a: { $elemMatch: { $expr: true } } }, 2],
    ['$near of an element', { a: { $elemMatch: { x: { $near: [0, 0] } } } }, 5626500],
    ['a $slice of one number in an array', { a: { $slice: [1] } }, 28667],
    ['two positional fields', { 'a.$': 1, 'b.$': 1 }, 31276],
    ['positional with $elemMatch', { a: { $elemMatch: { x: 1 } }, 'b.$': 1 }, 31256],
    ['a text score without a search', { s: { $meta: 'textScore' } }, 40218],
    ['an unknown expression', { a: { $nope: 1 } }, 168],
  ])('refuses %s', (_title, spec, code) => {
    expect(() => compileProjection(spec, ctx, compileFilter({}, ctx))).toThrow(
      expect.objectContaining({ code }),
    );
  });

  it('refuses a positional field no condition chose an element for', () => {
    expect(() => project({ a: [1] }, { 'a.$': 1 }, { b: null })).toThrow(
      expect.objectContaining({ code: 51246 }),
    );
  });
});

const names = fc.constantFrom('a', 'b', 'c', 'd');
const scalars = fc.oneof(fc.integer(), fc.string({ maxLength: 3 }));
const anyDoc = fc.dictionary(
  names,
  fc.oneof(scalars, fc.array(scalars, { maxLength: 3 }), fc.record({ x: scalars, y: scalars })),
);

describe('inclusion and exclusion', () => {
  it('of the same fields part a document in two', () => {
    fc.assert(
      fc.property(anyDoc, fc.uniqueArray(names, { minLength: 1 }), (doc, fields) => {
        const flags = (flag: number): Document => ({
          _id: 0,
          ...Object.fromEntries(fields.map((field) => [field, flag])),
        });
        const kept = project(doc, flags(1));
        const rest = project(doc, flags(0));
        expect(Object.keys(kept).filter((key) => key in rest)).toEqual([]);
        expect({ ...kept, ...rest }).toEqual(doc);
      }),
    );
  });

  it('never change the document', () => {
    fc.assert(
      fc.property(anyDoc, names, fc.boolean(), (doc, name, include) => {
        const before = text(doc);
        project(doc, { [`${name}.x`]: include });
        expect(text(doc)).toBe(before);
      }),
    );
  });
});
