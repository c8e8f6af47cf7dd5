import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleArguments } from './sample-arguments.js';
import { shownText } from './shown-text.js';

const DECEIVING = /[\p{Cc}\p{Cf}\u2028\u2029]/u;

describe('shown text', () => {
  it('writes out what hides, turns around or fakes', () => {
    expect(shownText('abc\u202egpj.exe\u0000\u200b\u2066x')).toBe('abc\\u202egpj.exe\\u0000\\u200b\\u2066x');
  });

  it('leaves what people write as it is', () => {
    const text = 'Größe 日本語 العربية 👍\n\tnext';
    expect(shownText(text)).toBe(text);
  });

  it('never holds a control or a format character of the basic plane, whatever it is given', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) }),
        (text) => {
          const shown = shownText(text).replaceAll(/[\n\t]/g, '');
          const format = Array.from(shown).filter((character) => DECEIVING.test(character));
          // Arabic number signs stand before digits, visibly.
          expect(
            format.filter((character) => !/[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2]/.test(character)),
          ).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('ends, however long it is', () => {
    expect(shownText('x'.repeat(1_000_000)).length).toBeLessThan(2_100);
  });
});

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
