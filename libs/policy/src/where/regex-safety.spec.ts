import { describe, expect, it } from 'vitest';
import { regexIssue } from './regex-safety.js';

describe('regexFault', () => {
  it.each([
    '^abc$',
    'a+b*c?',
    '\\d{4}-\\d{2}',
    '(foo|bar)',
    '(foo|bar)+',
    '(?:ab){2,}',
    '([0-9]{3}-){2}',
    '(a|b|[c-f]|\\d)*',
    '[(+*]+',
    '[^\\]a]+x',
    '[]a]+',
    '[[:alpha:]-]+',
    'x{2,5}?y++',
    '\\(literal\\)',
    '^.*love.*$',
    '(?i)blue',
    '(?=a)b',
    '(?<word>ab)c',
    '(?#note)a',
    '\\x41\\.',
    'é+',
    '{not a bound}',
    '',
  ])('passes %j', (pattern) => {
    expect(regexIssue(pattern)).toBeNull();
  });

  it.each([
    ['the reference rule', ['(a+)+', '(.*)*', '(a*)?', '(x+y)+$', '(\\w+\\s?)*']],
    ['nested groups', ['((a)+)+', '((a+))+', '(((a*)b))*', '(?:(?:a+)b)+', '(a(b+))+']],
    [
      'bounded quantifiers',
      ['(a{1,})+', '(a{2,})*', '(a+){2,}', '(a*){5}', '(a{1,9}){1,9}', '((ab){2,3}c){4,}'],
    ],
    ['optional parts under a repeat', ['(a?)+', '(ab?)*', '(a|b?)+']],
    [
      'overlapping alternatives under a repeat',
      [
        '(a|a)*',
        '(a|ab)+',
        '(\\w|\\d)*',
        '(.|x)+',
        '([a-f]|c)*',
        '(a|A)*',
        '(|a)+',
        '(é|ü)*',
        '(\\s|\\t)+',
        '([^b]|c)+',
        '((a|b)|[ab])+',
      ],
    ],
    ['a quantifier on a quantifier', ['a{2}{3}', 'a+{2}', 'a**']],
    ['a backreference under a repeat', ['(a\\1)+']],
    ['counts beyond reason', ['a{1001}', 'a{1,5000}']],
    ['more than ten unlimited repeats', ['.*'.repeat(11)]],
  ])('refuses %s', (_, patterns) => {
    expect(patterns.filter((pattern) => regexIssue(pattern) !== 'regex_redos')).toEqual([]);
  });

  it('reads blanks and comments as the x option does', () => {
    for (const pattern of ['(a{1,}) {2,}', '(a{1,})#note\n{2,}', '(ab?)\t+', '(a|a) *']) {
      expect(regexIssue(pattern, 'x')).toBe('regex_redos');
      expect(regexIssue(pattern)).not.toBe('invalid_regex');
    }
    expect(regexIssue('(a{1,}) {2,}', 'i')).toBeNull();
    expect(regexIssue('[ #]+\\ #(', 'x')).toBeNull();
  });

  it.each([
    '(',
    ')',
    '(a',
    'a)',
    '[a',
    '[',
    'a\\',
    '*a',
    '(?',
    '(?R)',
    '(?1)',
    '(?(1)a|b)',
    '(*LIMIT_MATCH=9)a',
    '(?x)a',
    '\\Qa',
    'a\0b',
  ])('refuses %j, which cannot be judged', (pattern) => {
    expect(regexIssue(pattern)).toBe('invalid_regex');
  });
});
