import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitToSize } from './fit-to-size.js';
import { measurePrinted } from './presented-rows.js';

describe('the size of a result before it is printed', () => {
  it('is never less than what is printed', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
        expect(measurePrinted(value, Infinity)).toBeGreaterThanOrEqual(JSON.stringify(value, null, 2).length);
      }),
    );
  });

  it('ends a result that would print more than any text can be, instead of failing', () => {
    let value: unknown = 'x'.repeat(1000);
    for (let level = 0; level < 30; level += 1) value = [value, value];
    expect(fitToSize('aggregate', { results: [{ value, n: 1 }] })).toMatchObject({
      data: { _truncated: { dropped_fields: ['value'] } },
    });
    expect(fitToSize('other', { value })).toMatchObject({ code: 'invalid_argument', gate: 'result_size' });
  });
});
