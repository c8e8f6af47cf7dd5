import { Decimal128, Double, Long, ObjectId } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Document } from '../bson/document.js';
import { compileFilter } from './filter.js';
import { compileJsonSchema } from './json-schema.js';

const context = { tick: () => {}, now: new Date(0) };
const holds = (schema: Document, value: unknown): boolean => compileJsonSchema(schema).test(value);

describe('a schema', () => {
  it.each<[string, Document, unknown[], unknown[]]>([
    ['nothing', {}, [1, 'a', null, {}], []],
    ['bsonType', { bsonType: 'long' }, [Long.ONE], [1, '1', new Double(1)]],
    ['several bsonTypes', { bsonType: ['int', 'null'] }, [1, null], ['a', Long.ONE]],
    ['bsonType number', { bsonType: 'number' }, [1, 1.5, Long.ONE, Decimal128.fromString('1')], ['1']],
    ['bsonType objectId', { bsonType: 'objectId' }, [new ObjectId()], ['x']],
    ['type', { type: 'boolean' }, [true], [1, 'true']],
    ['type of an array itself', { type: 'string' }, ['a'], [['a']]],
    ['enum', { enum: [1, 'a', { x: 1 }, null] }, [1, Long.ONE, 'a', { x: 1 }, null], [2, 'b', {}, undefined]],
    ['minimum', { minimum: 2 }, [2, Long.fromNumber(3), 'a', null], [1, Decimal128.fromString('1.9')]],
    ['exclusiveMinimum', { minimum: 2, exclusiveMinimum: true }, [3], [2]],
    ['maximum', { maximum: 2 }, [2, 1], [2.5]],
    ['exclusiveMaximum', { maximum: 2, exclusiveMaximum: true }, [1], [2]],
    ['multipleOf', { multipleOf: 0.1 }, [0.3, 1, 'a'], [0.35]],
    ['minLength in characters', { minLength: 2 }, ['ab', '😀😀', 1], ['a', '😀']],
    ['maxLength', { maxLength: 1 }, ['😀', [1, 2]], ['ab']],
    ['pattern anywhere in the text', { pattern: 'b+' }, ['abc', 1], ['ac']],
    ['required', { required: ['a', 'b'] }, [{ a: null, b: 1 }, 1], [{ a: 1 }, {}]],
    ['properties', { properties: { a: { bsonType: 'int' } } }, [{ a: 1 }, {}, { b: 'x' }], [{ a: 'x' }]],
    [
      'additionalProperties false',
      { properties: { a: {} }, patternProperties: { '^x_': {} }, additionalProperties: false },
      [{ a: 1, x_1: 2 }, {}],
      [{ a: 1, b: 2 }],
    ],
    [
      'additionalProperties by schema',
      { additionalProperties: { type: 'number' } },
      [{ a: 1 }],
      [{ a: 'x' }],
    ],
    [
      'patternProperties',
      { patternProperties: { _id$: { type: 'string' } } },
      [{ a_id: 'x' }],
      [{ a_id: 1 }],
    ],
    ['minProperties', { minProperties: 1 }, [{ a: 1 }, []], [{}]],
    ['maxProperties', { maxProperties: 1 }, [{ a: 1 }], [{ a: 1, b: 2 }]],
    ['dependencies', { dependencies: { a: ['b'] } }, [{ a: 1, b: 1 }, {}], [{ a: 1 }]],
    [
      'dependencies by schema',
      { dependencies: { a: { required: ['c'] } } },
      [{ a: 1, c: 1 }, {}],
      [{ a: 1 }],
    ],
    ['items', { items: { type: 'number' } }, [[1, 2], [], 'a'], [[1, 'a']]],
    [
      'items by position',
      { items: [{ type: 'number' }, { type: 'string' }] },
      [[1, 'a', true], [1]],
      [['a']],
    ],
    ['additionalItems', { items: [{}], additionalItems: false }, [[1], []], [[1, 2]]],
    ['minItems', { minItems: 1 }, [[1], {}], [[]]],
    ['maxItems', { maxItems: 1 }, [[1]], [[1, 2]]],
    [
      'uniqueItems',
      { uniqueItems: true },
      [
        [1, 2],
        [{ a: 1 }, { a: 2 }],
      ],
      [[1, Long.ONE]],
    ],
    ['allOf', { allOf: [{ minimum: 1 }, { maximum: 3 }] }, [2], [0, 4]],
    ['anyOf', { anyOf: [{ type: 'string' }, { minimum: 5, type: 'number' }] }, ['a', 5], [4]],
    ['oneOf', { oneOf: [{ minimum: 1 }, { minimum: 5 }] }, [2], [0, 6]],
    ['not', { not: { type: 'string' } }, [1], ['a']],
  ])('with %s', (_title, schema, good, bad) => {
    expect(good.filter((value) => !holds(schema, value))).toEqual([]);
    expect(bad.filter((value) => holds(schema, value))).toEqual([]);
    for (const value of good) expect(compileJsonSchema(schema).failures(value)).toEqual([]);
    for (const value of bad) expect(compileJsonSchema(schema).failures(value)).not.toEqual([]);
  });

  it.each<[string, unknown, number]>([
    ['that is no object', 5, 14],
    ['with an unknown keyword', { propertys: {} }, 9],
    ['with a keyword that MongoDB leaves out', { format: 'email' }, 9],
    ['with the type integer', { type: 'integer' }, 9],
    ['with an unknown type', { type: 'text' }, 9],
    ['with an unknown bsonType', { bsonType: 'text' }, 2],
    ['with both types', { type: 'string', bsonType: 'string' }, 9],
    ['with an empty enum', { enum: [] }, 9],
    ['with an empty required', { required: [] }, 9],
    ['with a text as minimum', { minimum: '1' }, 14],
    ['with null as its title', { title: null }, 14],
    ['with a number as its description', { description: 1 }, 14],
    ['with a negative length', { minLength: -1 }, 9],
    ['with a bound that is missing', { exclusiveMinimum: true }, 9],
    ['with a broken nested schema', { properties: { a: { items: { nope: 1 } } } }, 9],
    ['with encryption', { encrypt: {} }, 238],
  ])('%s is refused', (_title, schema, code) => {
    expect(() => compileFilter({ $jsonSchema: schema }, context)).toThrow(
      expect.objectContaining({ code }) as Error,
    );
  });

  it('selects documents, alone and among other conditions', () => {
    const filter = compileFilter(
      { $or: [{ $jsonSchema: { required: ['a'] } }, { b: 1 }], $nor: [{ $jsonSchema: { required: ['c'] } }] },
      context,
    );
    expect([{ a: 1 }, { b: 1 }, { b: 2 }, { a: 1, c: 1 }].map((doc) => filter.matches(doc))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('never fails on a value, and gives reasons exactly for values that do not satisfy it', () => {
    const leaf = fc.constantFrom<Document>(
      { bsonType: 'int' },
      { required: ['a'] },
      { minLength: 2 },
      { enum: [1, 'aa'] },
      { maximum: 3 },
      { minItems: 1, uniqueItems: true },
    );
    const schema = fc.oneof(
      leaf,
      leaf.map((inner) => ({ properties: { a: inner }, additionalProperties: inner })),
      leaf.map((inner) => ({ items: inner, not: inner })),
      fc.tuple(leaf, leaf).map((both) => ({ oneOf: both })),
    );
    fc.assert(
      fc.property(schema, fc.jsonValue(), (written, value) => {
        const compiled = compileJsonSchema(written);
        expect(compiled.failures(value).length === 0).toBe(compiled.test(value));
      }),
      { numRuns: 300 },
    );
  });
});
