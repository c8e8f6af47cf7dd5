import { describe, expect, it } from 'vitest';
import { compileExpression } from './expression.js';

const ctx = { tick: () => undefined, now: new Date(0) };
const evaluate = (expression: unknown) => compileExpression(expression, ctx).evaluate({ list: [1, 2, 3] });
const doubleValue = (step: unknown, times = 40) => ({
  $reduce: { input: { $range: [0, times] }, initialValue: [1], in: step },
});

describe('a value that holds another many times over', () => {
  it.each<[string, unknown]>([
    ['in a list', ['$$value', '$$value']],
    ['in an object', { a: '$$value', b: '$$value' }],
    ['in joined lists', { $concatArrays: [['$$value'], ['$$value']] }],
    ['in zipped lists', { $zip: { inputs: [['$$value'], ['$$value']] } }],
    ['in mapped lists', { $map: { input: [1, 2], as: 'one', in: '$$value' } }],
  ])('is refused before anybody has to walk it: %s', (_, step) => {
    expect(() => evaluate(doubleValue(step))).toThrow(expect.objectContaining({ code: 146 }));
  });

  it('is made as long as it stays small', () => {
    expect(evaluate({ $size: doubleValue({ $concatArrays: ['$$value', '$$value'] }, 10) })).toBe(1024);
    expect(evaluate({ $size: { $range: [0, 1_000_000] } })).toBe(1_000_000);
  });
});
