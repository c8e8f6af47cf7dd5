import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withHiddenWritten } from './text.js';

describe('hidden characters', () => {
  it.each([
    ['a\u202eb\u200b\u0000', 'a\\u202eb\\u200b\\u0000'],
    // Tags and variation selectors can carry a whole text that no person sees.
    ['ok\u{e0041}\u{e007f}', 'ok\\u{e0041}\\u{e007f}'],
    ['👍\ufe0f\ufe01\u{e0100}', '👍\\ufe0f\\ufe01\\u{e0100}'],
    ['a\u034fb\u3164\u2800', 'a\\u034fb\\u3164\u2800'],
    ['1\ufe0f', '1\\ufe0f'],
  ])('of %j are written out', (given, shown) => {
    expect(withHiddenWritten(given)).toBe(shown);
  });

  it('are none in what people write', () => {
    const written = 'Größe 日本語 العربية 👍 ❤\ufe0f ⚠\ufe0f 1\ufe0f\u20e3\n\tnext';
    expect(withHiddenWritten(written)).toBe(written);
  });

  it('never remain, but for the selector that makes a sign an emoji', () => {
    const character = fc.oneof(
      fc.integer({ min: 0, max: 0x10ffff }),
      fc.integer({ min: 0xe0000, max: 0xe01ef }),
      fc.constantFrom(0xfe0f, 0x2764, 0x31),
    );
    fc.assert(
      fc.property(fc.array(character), (codes) => {
        const shown = withHiddenWritten(codes.map((code) => String.fromCodePoint(code)).join(''));
        expect(shown.replaceAll(/\p{Emoji}\ufe0f/gu, '')).not.toMatch(
          /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]|\p{Default_Ignorable_Code_Point}/u,
        );
      }),
      { numRuns: 500 },
    );
  });
});
