import { BSONRegExp } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileRegex } from './regex.js';

const raw = String.raw;

describe('a PCRE pattern', () => {
  it.each([
    ['matches anywhere', 'b', '', 'abc', true],
    ['folds case by option', 'straße', 'i', 'STRAßE', true],
    ['folds ranges', '^[a-c]+$', 'i', 'ABC', true],
    ['folds case of one group', '^(?i:a)b$', '', 'Ab', true],
    ['folds nothing outside that group', '^(?i:a)b$', '', 'AB', false],
    ['folds case from inside a sequence on', '^a(?i)b$', '', 'aB', true],
    ['lets ^ match at lines with m', '^b', 'm', 'a\nb', true],
    ['keeps ^ at the start without m', '^b', '', 'a\nb', false],
    ['lets the dot match a newline with s only', 'a.b', '', 'a\nb', false],
    ['takes UTF-8 for granted', '(*UTF8)é', '', 'é', true],
    ['lets the dot match a newline with s', 'a.b', 's', 'a\nb', true],
    ['lets the dot match a carriage return', 'a.b', '', 'a\rb', true],
    ['ignores comments with x', 'a # first\n b', 'x', 'ab', true],
    ['keeps an escaped space with x', raw`a\ b`, 'x', 'a b', true],
    ['lets $ match before a final newline', 'a$', '', 'a\n', true],
    [raw`keeps \z at the very end`, raw`a\z`, '', 'a\n', false],
    [raw`anchors \A at the start`, raw`\Ab`, 'm', 'a\nb', false],
    ['quotes to the end without a closing mark', raw`\Qa+b`, '', 'a+b', true],
    ['applies a quantifier to the last quoted character', raw`^\Qab\E+$`, '', 'abbb', true],
    ['knows POSIX classes', '^[[:alpha:]_]+$', '', 'ab_c', true],
    ['takes ] first in a class as a character', '^[]a]+$', '', 'a]', true],
    ['takes an unfinished brace as text', '^a{,2}b{$', '', 'a{,2}b{', true],
    ['knows hexadecimal characters', raw`\x{1F600}`, '', 'an 😀', true],
    ['knows horizontal space', raw`^a\hb$`, '', 'a\tb', true],
    ['knows property classes', raw`^\p{Lu}\p{L}+$`, '', 'Émile', true],
    ['counts an emoji as one character', '^.$', '', '😀', true],
    ['counts an emoji as one character of an inverted class', '^[^a]$', '', '😀', true],
    ['repeats an emoji as a whole', '^😀{2}$', '', '😀😀', true],
    ['never gives back what is possessive', 'a++a', '', 'aaa', false],
    ['never gives back what an atomic group took', '(?>a+)a', '', 'aaa', false],
    ['looks ahead', 'foo(?=bar)', '', 'foobar', true],
    ['looks behind', '(?<!x)foo', '', 'xfoo', false],
    ['looks behind at signs that repeat nothing', raw`(?<=\+[*?](?:a|b))c`, '', '+?bc', true],
    ['refers back by number', raw`^(\w)\1$`, '', 'aa', true],
    ['refers back by name', '^(?P<c>a|b)(?P=c)$', '', 'ab', false],
    ['refers back with case folded', raw`^(a)\1$`, 'i', 'aA', true],
  ])('%s', (_title, pattern, options, text, matches) => {
    expect(compileRegex(pattern, options).test(text)).toBe(matches);
  });

  it.each([
    '(?<=a+)b',
    '(?<!x{1,2})b',
    'a(',
    '(?<n',
    '[a',
    'a)',
    '*a',
    'a{3,2}',
    '[b-a]',
    raw`\K`,
    raw`(a)\2`,
    '(?z)a',
    '(*ACCEPT)',
    '[[:nope:]]',
    raw`\p{Nope}`,
    'a**',
  ])('is refused when malformed or unknown: %s', (pattern) => {
    expect(() => compileRegex(pattern)).toThrow(expect.objectContaining({ code: 51091 }));
  });

  it('is refused with a null byte, an unknown option or options given twice', () => {
    expect(() => compileRegex('a\0b')).toThrow(expect.objectContaining({ code: 2 }));
    expect(() => compileRegex('a', 'g')).toThrow(expect.objectContaining({ code: 51108 }));
    expect(() => compileRegex(new BSONRegExp('a', 'i'), 'm')).toThrow(
      expect.objectContaining({ code: 51075 }),
    );
  });

  it('is refused when nested beyond reason', () => {
    expect(() => compileRegex('('.repeat(10_000) + ')'.repeat(10_000))).toThrow(
      expect.objectContaining({ code: 51091 }),
    );
  });

  it('is refused past the length of a pattern', () => {
    expect(() => compileRegex('a'.repeat(40_000))).toThrow(expect.objectContaining({ code: 51091 }));
  });

  it('reports groups in order, unset ones as null', () => {
    expect(compileRegex('(a)|(b)').exec('xb', 0)).toEqual({ index: 1, text: 'b', captures: [null, 'b'] });
  });
});

describe('a pattern made to stall the server', () => {
  const bait = `${'a'.repeat(64)}!`;

  it.each([
    ['nested repetition', '^(a+)+$', ''],
    ['nested repetition with case folded', '^(a+)+$', 'i'],
    ['alternatives that overlap', '^(a|a)+$', ''],
    ['nested lazy repetition', '^(a+?)+?$', 's'],
    ['repetition of an optional part', '^(a?a?)+$', 'm'],
  ])('is answered in linear time: %s', (_title, pattern, options) => {
    expect(compileRegex(pattern, options).test(bait)).toBe(false);
  });

  it.each([
    ['a look-ahead inside', '^(?=a)(a+)+$'],
    ['a back-reference inside', raw`^(a+)+\1$`],
    ['alternatives repeated beside a look-behind', '(?<=x)(a|a)*$'],
    ['a property class, which needs the slow engine', raw`^(\p{L}+)+$`],
    ['counted repetition too large for the linear engine', '^(a{1,300}){1,300}$'],
  ])('is refused when only backtracking can run it: %s', (_title, pattern) => {
    expect(() => compileRegex(pattern).test(bait)).toThrow(expect.objectContaining({ code: 51091 }));
  });

  it('is refused on long texts when its work grows with a power of the length', () => {
    const regex = compileRegex('(?=x)a*b*c*d');
    expect(regex.test('a'.repeat(20))).toBe(false);
    expect(() => regex.test('a'.repeat(5000))).toThrow(expect.objectContaining({ code: 51091 }));
  });

  it('runs on a long text in linear time from the start, not after backtracking', () => {
    const words = 'ab '.repeat(60_000);
    expect(compileRegex('.*.*~').test(words)).toBe(false);
    expect(compileRegex('.*b.*~').test(`${words}~`)).toBe(true);
  });

  it('is refused on long texts when a huge pattern would meet them, though not a huge literal', () => {
    const text = 'a'.repeat(300_000);
    expect(() => compileRegex(`^${'a?'.repeat(8000)}b`).test(text)).toThrow(
      expect.objectContaining({ code: 51091 }),
    );
    expect(compileRegex(`^${'a'.repeat(16_000)}`).test(text)).toBe(true);
  });

  it('is bounded for texts with emoji as well', () => {
    expect(() => compileRegex('^(.+)+$').test(`${'😀'.repeat(40)}\n!`)).toThrow(
      expect.objectContaining({ code: 51091 }),
    );
  });
});

describe('quoted text', () => {
  it('never means anything but itself', () => {
    fc.assert(
      fc.property(
        fc
          .string({ minLength: 1 })
          .filter((text) => !text.includes('\\E') && !text.includes('\0') && !text.endsWith('\\')),
        fc.string(),
        (text, other) => {
          const regex = compileRegex(`^\\Q${text}\\E`);
          expect(regex.test(text + other)).toBe(true);
          expect(regex.test(other)).toBe(other.startsWith(text));
        },
      ),
    );
  });
});
