import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutFormulas } from './safe-text.js';

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
