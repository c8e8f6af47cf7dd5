import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { oneLine, terminalText } from './audit-log.js';

describe('text of others at a terminal', () => {
  it.each([
    ['a control sequence', '\u001b[2J', '\\x1b[2J'],
    ['a line end', 'a\nb', 'a\\nb'],
    ['text that runs the other way', 'a\u202Eb', 'a\\u202eb'],
    ['a space that has no width', 'a\u200Bb', 'a\\u200bb'],
    ['a soft hyphen', 'a\u00ADb', 'a\\xadb'],
    ['a letter that fills a line with nothing', 'a\u3164b', 'a\\u3164b'],
    ['words in variation selectors', 'ok\u{E0158}\u{E0159}', 'ok\\udb40\\udd58\\udb40\\udd59'],
    ['selectors behind plain letters', 'a\uFE00b\uFE0F', 'a\\ufe00b\\ufe0f'],
    ['a mark that joins letters', 'a\u034Fb', 'a\\u034fb'],
    ['an annotation', 'a\uFFF9b\uFFFBc', 'a\\ufff9b\\ufffbc'],
    ['words in tags', 'ok\u{E0068}\u{E0069}', 'ok\\udb40\\udc68\\udb40\\udc69'],
  ])('has %s written out', (_, text, shown) => {
    expect(oneLine(text)).toBe(shown);
  });

  it('never has a control character, a line end or text without width, wherever it stands', () => {
    const unsafe = fc.constantFrom(
      '\u0000',
      '\n',
      '\r',
      '\u001b',
      '\u007f',
      '\u0085',
      '\u202e',
      '\u2066',
      '\u{e0041}',
      '\u{e0158}',
      '\u206a',
    );
    fc.assert(
      fc.property(fc.string(), unsafe, fc.string({ unit: 'binary' }), (before, character, after) => {
        const shown = oneLine(before + character + after);
        expect(shown).not.toContain(character);
        expect(oneLine(shown)).toBe(shown);
      }),
    );
  });

  it('keeps words of any script, and pictures', () => {
    for (const text of ['Ærø', '日本語', 'שלום', '한국', '👍🏽', '❤️', '3️⃣'])
      expect(terminalText(text)).toBe(text);
  });
});
