// oxlint-disable unicorn/no-thenable -- $cond and $switch call a field "then".
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { constraintIssue } from '../compile/compile-policy.js';
import { SCANNED_OPERATORS } from '../where/translate-where.js';
import { FILTER_OPERATORS, type FitOperands, MATCH_OPERATORS, REFUSED_IN_FILTERS } from './operators.js';
import { assertCannotFail } from './total-filter.js';

const refusalOf = (expression: unknown): string => {
  try {
    assertCannotFail({ $or: [{ a: 1 }, { $expr: expression }] });
    return '';
  } catch (error) {
    return (error as Error & { refusal: { message: string; code: string } }).refusal.message;
  }
};

describe('the operators of filters', () => {
  const page = readFileSync(new URL('../../../../docs/guide/tools.md', import.meta.url), 'utf8');
  const [, section = ''] = page.split('### Expressions in a filter');
  const rows = section.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));

  it.each<[FitOperands, number]>([
    ['anything', 1],
    ['arrays', 2],
    ['numbers', 3],
    ['shape', 4],
  ])('stand in the documentation as in the code: with %s', (fit, row) => {
    const documented = [...(rows[row]?.split('|')[2] ?? '').matchAll(/`(\$\w+)`/g)].map(([, name]) => name);
    const inCode = Object.entries(FILTER_OPERATORS).filter(([, operands]) => operands === fit);
    expect(documented).toEqual(inCode.map(([operator]) => operator));
  });

  it('hold whatever a where may say of a column', () => {
    const translated = new Set(
      [
        '$containedIn $containedBy $containsAll $within $point $term $language $caseSensitive $diacriticSensitive $near $nearSphere $maxDistance $maxDistanceInMiles $maxDistanceInKilometers',
      ].flatMap((names) => names.split(' ')),
    );
    const others = [
      '$maxDistanceInRadians',
      '$inQuery',
      '$notInQuery',
      '$select',
      '$dontSelect',
      '$relatedTo',
    ];
    const missing = SCANNED_OPERATORS.filter(
      (operator) => !MATCH_OPERATORS.has(operator) && !translated.has(operator) && !others.includes(operator),
    );
    expect(missing).toEqual([]);
  });
});

describe('a refusal of an expression in a filter', () => {
  it.each<[string, unknown, RegExp]>([
    ['says what to compute first', { $divide: ['$a', '$b'] }, /'\$divide' can fail on a row.*"\$addFields"/],
    ['says what repeats', { $let: { vars: { x: 1 }, in: '$$x' } }, /'\$let' can repeat a value/],
    [
      'says how to give an array',
      { $size: '$tags' },
      /"\$size": \{ "\$cond": \[\{ "\$isArray": "\$field" \}/,
    ],
    [
      'says how to give numbers',
      { $add: ['$a', 1] },
      /"\$add": \[\{ "\$cond": \[\{ "\$isNumber": "\$field" \}/,
    ],
    ['says what $in needs', { $in: ['$a', '$b'] }, /needs an array as its second operand/],
    ['says what $switch needs', { $switch: { branches: [{ case: true, then: 1 }] } }, /needs a default/],
    ['lists what there is', { $frobnicate: 1 }, /no operator that may stand.*\$eq \$ne/],
    ['cuts a long name', { [`$${'x'.repeat(500)}`]: 1 }, /^'\$x{63}' is/],
  ])('%s', (_, expression, message) => {
    expect(refusalOf(expression)).toMatch(message);
  });

  it.each(Object.keys(REFUSED_IN_FILTERS))('names %s', (operator) => {
    expect(refusalOf({ [operator]: '$a' })).toContain(`'${operator}'`);
  });
});

describe('a filter of the operator', () => {
  it.each(['$expr', '$where', '$function'])('with %s is found before anything is served', (operator) => {
    for (const filter of [{ [operator]: '1' }, { $or: [{ a: 1 }, { [operator]: '1' }] }])
      expect(constraintIssue(filter, 'Post')).toMatch(
        `'${operator}' cannot stand in it: where it fails on one row, every call would fail`,
      );
  });
});
