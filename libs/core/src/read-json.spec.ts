import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inexactIn, isExactNumber, markInexact, readJson, setOwn } from './read-json.js';

function depthOf(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

const nested = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 26, withCrossShrink: true },
    fc.oneof(fc.string(), fc.integer(), fc.constant('[{"\\:'), fc.constant(null)),
    fc.tuple(tie('value')),
    fc.record({ 'a":[': tie('value'), b: fc.constant('"') }),
  ),
}));

/** What a reading comes to: the value, or the fault. */
const outcome = (text: string, levels?: number) => {
  const reading = readJson(text, levels);
  return reading.ok ? { value: reading.value } : reading.fault;
};

describe('readJson', () => {
  it('reads what JSON.parse reads, and nothing that is nested deeper than the levels', () => {
    fc.assert(
      fc.property(nested.value, fc.boolean(), (value, pretty) => {
        const text = JSON.stringify(value, null, pretty ? 2 : 0);
        expect(outcome(text, 20)).toEqual(depthOf(value) <= 20 ? { value } : 'depth');
      }),
      { numRuns: 500 },
    );
  });

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), fc.nat(), (text, at) => {
        expect(typeof readJson(text.slice(0, at % 50)).ok).toBe('boolean');
        expect(typeof readJson(text).ok).toBe('boolean');
      }),
    );
  });

  it('refuses every integer that a double does not hold, wherever it stands, and says its digits', () => {
    const integers = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n });
    const around = integers.map((integer) => (integer % 2n === 0n ? integer : 2n ** 53n + (integer % 9n)));
    fc.assert(
      fc.property(around, fc.string(), (integer, name) => {
        const literal = String(integer);
        const reading = readJson(JSON.stringify({ a: [{ [name]: 'PLACE' }] }).replace('"PLACE"', literal));
        const double = Number(integer);
        const isShortest = Math.abs(double) >= 2 ** 63 && String(double) === literal;
        if (BigInt(double) === integer || isShortest) expect(reading).toMatchObject({ ok: true });
        else
          expect(reading).toMatchObject({
            fault: 'number',
            numbers: [{ path: ['a', 0, name], literal }],
            value: { a: [{ [name]: literal }] },
          });
      }),
      { numRuns: 1_000 },
    );
  });

  it('reads every double as JSON.stringify writes it, but for whole ones that a 64-bit integer could be', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (double) => {
        const text = JSON.stringify(double);
        const inLongs = Math.abs(double) > 2 ** 53 && Math.abs(double) < 2 ** 63;
        if (!inLongs) expect(outcome(text)).toEqual({ value: JSON.parse(text) });
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    ['9007199254740992', true],
    ['9007199254740993', false],
    ['-9007199254740993', false],
    ['9007199254740993.0', false],
    ['9007199254740993.5', true],
    ['1e3', true],
    ['1e21', true],
    ['1E+22', true],
    ['1e400', false],
    ['-1e400', false],
    [`1${'0'.repeat(400)}`, false],
    ['-0', true],
    ['0.1000000000000000055511151231257827', true],
    ['18446744073709551615', false],
    ['18446744073709552000', true],
    ['1234567890123456800', false],
    ['1234567890123456768', true],
  ])('of %s says whether a double holds it: %s', (literal, exact) => {
    expect(isExactNumber(literal)).toBe(exact);
    expect(readJson(`[${literal}]`).ok).toBe(exact);
    expect(readJson(`["${literal}"]`).ok).toBe(true);
  });

  it('refuses a member that an object has twice, in whichever spelling', () => {
    for (const text of [
      '{"a":1,"a":1}',
      '{"a":1,"\\u0061":2}',
      '[{"b":{"__proto__":1,"\\u005f_proto__":2}}]',
      '{"":1,"x":":","":2}',
      '{"constructor":1,"constructor":2}',
    ])
      expect(outcome(text)).toBe('repeated');
    for (const text of ['{"a":{"a":1},"b":[{"a":1},{"a":1}]}', '{"__proto__":1}', '{"a:":":\\"a\\":"}'])
      expect(outcome(text)).toEqual({ value: JSON.parse(text) });
  });

  it('leaves out one byte order mark before the text, and none elsewhere', () => {
    expect(outcome('\u{feff}{"a":1}')).toEqual({ value: { a: 1 } });
    expect(outcome('\u{feff}\u{feff}{}')).toBe('syntax');
    expect(outcome('{\u{feff}}')).toBe('syntax');
    expect(outcome('"\u{feff}"')).toEqual({ value: '\u{feff}' });
  });

  it('says what to write instead of a number, and is short about a long one', () => {
    const why = (text: string) => (readJson(text) as { why: string }).why;
    expect(why('{"where":{"$or":[{"n":9007199254740993}]}}')).toBe(
      'where.$or[0].n is 9007199254740993, which no JSON number holds exactly (whole numbers only up to 9007199254740991); write it as text: "9007199254740993"',
    );
    expect(why(`{"${'n'.repeat(1_000)}":1${'0'.repeat(1_000)}}`).length).toBeLessThan(500);
  });

  it('does not tell apart more than a hundred of them', () => {
    const many = (count: number) => readJson(`[${Array(count).fill('9007199254740993').join(',')}]`);
    expect(many(100)).toMatchObject({ fault: 'number', value: Array(100).fill('9007199254740993') });
    expect(many(101)).toMatchObject({ fault: 'number', numbers: [], value: undefined });
  });
});

describe('a mark', () => {
  it('says of an object what is wrong with it, and keeps what was said first', () => {
    const marked = {};
    markInexact(marked, 'first');
    markInexact(marked, 'second');
    expect([marked, {}, null, 'text'].map(inexactIn)).toEqual(['first', undefined, undefined, undefined]);
  });
});

describe('setOwn', () => {
  it.each(['title', '__proto__', 'constructor', 'toString', ''])(
    'sets %j as a member like any other',
    (name) => {
      const target: Record<string, unknown> = {};
      setOwn(target, name, { kept: true });
      expect(Object.keys(target)).toEqual([name]);
      expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
      expect('kept' in target).toBe(false);
      setOwn(target, name, 2);
      expect(Object.entries(target)).toEqual([[name, 2]]);
    },
  );
});
