import { describe, expect, it } from 'vitest';
import { compileGivenForms } from './argument.decorators.js';

const read = compileGivenForms({
  type: 'object',
  properties: {
    where: { type: 'object' },
    keys: { type: 'array', items: { type: 'string' } },
    title: { type: 'string' },
    either: { type: ['object', 'string', 'null'] },
    open: {},
    nullable: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    limit: { type: 'integer' },
  },
});

describe('arguments as models send them', () => {
  it.each<[object, object]>([
    [{ where: '{"a":1}' }, { where: { a: 1 } }],
    [
      { where: '[1]', keys: '{}' },
      { where: '[1]', keys: '{}' },
    ],
    [{ keys: '["a","b"]' }, { keys: ['a', 'b'] }],
    [{ where: 'a is 1' }, { where: 'a is 1' }],
    [
      { title: '{"a":1}', either: '{"a":1}', open: '{"a":1}' },
      { title: '{"a":1}', either: '{"a":1}', open: '{"a":1}' },
    ],
    [{ where: null, keys: null, title: null, limit: null }, {}],
    [
      { either: null, open: null, nullable: null },
      { either: null, open: null, nullable: null },
    ],
    [{ other: null, __proto__: null }, { other: null }],
  ])('%j is read as %j', (given, expected) => {
    expect(read(given)).toEqual(expected);
  });

  it.each([
    [
      ' {"n":9007199254740993}',
      'where as JSON text: n is 9007199254740993, which no JSON number holds exactly',
    ],
    ['{"n":1,"n":2}', 'where as JSON text: an object has a member twice'],
  ])('that cannot be read exactly are refused with the reason: %s', (where, reason) => {
    expect(() => read({ where })).toThrow(
      expect.objectContaining({
        refusal: expect.objectContaining({ message: expect.stringContaining(reason) }),
      }),
    );
  });
});
