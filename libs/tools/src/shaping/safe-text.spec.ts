import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withHiddenWritten, withoutFormulas } from './safe-text.js';

/** Text that is rich in what decides. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(...'=+-@＝＋－＠;\t\r\n "\u00a0\u200b\0ax1,'.split('')),
      fc.string({ maxLength: 3 }),
    ),
  )
  .map((parts) => parts.join(''));

describe('text for a spreadsheet', () => {
  it.each([
    ['=1+1', "'=1+1"],
    ['-5', "'-5"],
    ['  =1', "'  =1"],
    ['\n=1', "'\n'=1"],
    ['\tx', "'\tx"],
    ['＝1', "'＝1"],
    ['\u200b@x', "'\u200b@x"],
    ['x;=HYPERLINK("http://x")', 'x;\'=HYPERLINK("http://x")'],
    // In the file the quotes are doubled: behind `;` they are an empty cell text with a formula after it.
    ['x;"=1"', 'x;\'"=1"'],
    ['x\n =1;+2', "x\n' =1;'+2"],
    ['a = b - c, me@example.com; x-y', 'a = b - c, me@example.com; x-y'],
    ['', ''],
  ])('%j is %j', (given, safe) => {
    expect(withoutFormulas(given)).toBe(safe);
  });

  it('never begins as a formula, wherever it is split into cells', () => {
    fc.assert(
      fc.property(text, (given) => {
        const cells = withoutFormulas(given).split(/[;\t\r\n]/);
        expect(cells.filter((cell) => /^[\s\p{Cc}\p{Cf}"]*[=+\-@＝＋－＠]/u.test(cell))).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  it('loses nothing, and is safe text already where it is written again', () => {
    fc.assert(
      fc.property(text, (given) => {
        const safe = withoutFormulas(given);
        expect(safe.replaceAll("'", '')).toBe(given.replaceAll("'", ''));
        expect(withoutFormulas(safe)).toBe(safe);
      }),
    );
  });

  it('is found in time that grows with the text alone', () => {
    const began = performance.now();
    for (const unit of ['\t', ' ', ';', '\n', '"', '\u200b']) withoutFormulas(unit.repeat(300_000));
    expect(performance.now() - began).toBeLessThan(3_000);
  });
});

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
