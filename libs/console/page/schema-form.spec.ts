import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJson } from '../../core/src/read-json.js';
import { inputFor, readInput, sampleArguments, withArgument } from './schema-form.js';

describe('sample arguments', () => {
  it('hold what must be given and nothing else', () => {
    const schema = {
      required: ['class_name', 'limit', 'how', 'where', 'ids', 'odd'],
      properties: {
        class_name: { type: 'string' },
        limit: { type: ['integer', 'null'] },
        how: { enum: ['a', 'b'] },
        where: { type: 'object' },
        ids: { type: 'array' },
        other: { type: 'string' },
      },
    };
    expect(sampleArguments(schema)).toEqual({
      class_name: '',
      limit: 1,
      how: 'a',
      where: {},
      ids: [],
      odd: '',
    });
    expect(sampleArguments({})).toEqual({});
  });
});

describe('an argument of the form', () => {
  it.each([
    [{ enum: ['a', 'b'] }, 'choice'],
    [{ enum: [1, 2] }, 'json'],
    [{ type: 'string' }, 'text'],
    [{ type: ['integer', 'null'] }, 'number'],
    [{ type: 'boolean' }, 'yes-no'],
    [{ type: 'array', items: { type: 'string' } }, 'lines'],
    [{ type: 'array', items: { type: 'object' } }, 'json'],
    [{ type: 'object' }, 'json'],
    [{}, 'json'],
  ])('%j is written as %s', (schema, kind) => {
    expect(inputFor(schema)).toBe(kind);
  });

  it('is left out when its input is empty', () => {
    for (const kind of ['text', 'number', 'lines', 'json'] as const)
      expect(withArgument({ a: 1, b: 2 }, 'b', readInput(kind, ''))).toEqual({ a: 1 });
  });

  it('that is written as JSON and read again is the same', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        fc.pre(readJson(text).ok);
        expect(JSON.stringify(readInput('json', text))).toBe(text);
      }),
    );
    expect(() => readInput('json', '{')).toThrow(SyntaxError);
  });

  it('is refused when it is a number that would be rounded', () => {
    for (const kind of ['json', 'number'] as const)
      expect(() => readInput(kind, '9007199254740993')).toThrow(/write it as text/i);
    expect(readInput('number', '9007199254740992')).toBe(9007199254740992);
  });
});
