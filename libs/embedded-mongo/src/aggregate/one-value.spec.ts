import { Decimal128, Double, Long, ObjectId } from 'bson';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Document } from '../bson/document.js';
import { typeName } from '../bson/type-name.js';
import { MongoError } from '../errors.js';
import { runPipeline } from '../testing/run-pipeline.js';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const context = { tick: () => {}, now: new Date(0), variables: {}, collection: () => [] };
const run = (stages: Document[], document: Document): Document[] => [
  ...runPipeline(stages, [document], context),
];

const number = fc.oneof(
  fc.integer({ min: -9, max: 9 }),
  fc.integer({ min: -90, max: 90 }).map((n) => n / 10),
  fc.integer({ min: -9, max: 9 }).map((n) => Long.fromNumber(n)),
  fc.integer({ min: -99, max: 99 }).map((n) => Decimal128.fromString(`${n}E-1`)),
  fc.constantFrom(new Double(2), -0, NaN, null),
);
const text = fc.constantFrom('', 'a', 'Äb', 'a,b', '12');
const array = fc.array(fc.oneof(number, text), { maxLength: 3 });
const date = new Date(86_400_000);
const other = fc.constantFrom<unknown>(null, true, date, new ObjectId('0'.repeat(24)), { x: 1 });

/** An operator with operands that it mostly takes: of any others it says so, or answers null. */
const of = (names: string[], ...operands: fc.Arbitrary<unknown>[]) =>
  fc.tuple(fc.constantFrom(...names), ...operands).map(([name, ...values]) => ({ name, values }));
const call = fc.oneof(
  of(['$add', '$subtract', '$multiply', '$divide', '$mod', '$pow', '$cmp', '$max', '$min'], number, number),
  of(
    ['$abs', '$ceil', '$floor', '$trunc', '$round', '$sqrt', '$exp', '$toString', '$toDecimal', '$not'],
    number,
  ),
  of(['$concat', '$split', '$indexOfCP', '$strcasecmp'], text, text),
  of(['$toUpper', '$strLenCP', '$strLenBytes', '$toBool', '$trim'], text),
  of(['$concatArrays', '$setUnion', '$setIntersection', '$setDifference'], array, array),
  of(['$size', '$reverseArray', '$first', '$last', '$sum', '$avg', '$stdDevPop'], array),
  of(['$in', '$indexOfArray'], number, array),
  of(
    ['$eq', '$lt', '$gte', '$ifNull', '$and', '$or'],
    fc.oneof(number, text, other),
    fc.oneof(number, other),
  ),
  of(['$toDate', '$max', '$toString', '$hour'], fc.constant(date)),
  of(['$type', '$isArray', '$isNumber', '$toInt', '$toDate', '$year'], fc.oneof(number, text, other, array)),
);

interface Outcome {
  readonly value?: unknown;
  readonly code?: number;
}

function outcome(compute: () => unknown): Outcome {
  try {
    return { value: compute() };
  } catch (error) {
    if (error instanceof MongoError) return { code: error.code };
    throw error;
  }
}

const argument = (name: string, operands: unknown[]): unknown =>
  name === '$trim'
    ? { input: operands[0] }
    : name === '$indexOfArray'
      ? operands.toReversed()
      : operands.length === 1 && !Array.isArray(operands[0])
        ? operands[0]
        : operands;

describe('an expression', () => {
  it('has one value as a constant, of fields, of variables, in a filter and behind stages in any order', () => {
    const met = { values: 0, nulls: 0, errors: 0 };
    const kinds = new Set<string>();
    fc.assert(
      fc.property(call, fc.boolean(), ({ name, values }, flip) => {
        const of = (operands: unknown[]): Document => ({ [name]: argument(name, operands) });
        const paths = values.map((_, i) => `$v${i}`);
        const fields = Object.fromEntries(values.map((value, i) => [`v${i}`, value]));
        const project = (expression: unknown, document: Document, before: Document[] = []): Outcome =>
          outcome(
            () =>
              run([...before, { $project: { value: expression } }], { _id: 1, ...document })[0]?.['value'],
          );
        const literals = values.map((value) => ({ $literal: value }));
        const expected = project(of(literals), {});
        expect(project(of(paths), fields)).toEqual(expected);
        const vars = Object.fromEntries(values.map((value, i) => [`w${i}`, { $literal: value }]));
        const variables = { $let: { vars, in: of(values.map((_, i) => `$$w${i}`)) } };
        expect(project(variables, {})).toEqual(expected);
        const stages = literals.map((value, i): Document => ({ $addFields: { [`v${i}`]: value } }));
        const noise: Document[] = [{ $addFields: { z: 1 } }, { $match: { z: 1 } }, { $unset: 'z' }];
        const before = flip ? [...noise, ...stages.toReversed()] : [...stages, ...noise];
        expect(project(of(paths), {}, before)).toEqual(expected);
        const same = { $expr: { $eq: [of(paths), { $literal: expected.value }] } };
        const matched = outcome(() => run([{ $match: same }], { _id: 1, ...fields }).length);
        expect(matched).toEqual(expected.code === undefined ? { value: 1 } : expected);
        if (expected.code !== undefined) met.errors += 1;
        else if (expected.value === null) met.nulls += 1;
        else met.values += 1;
        if (expected.value !== undefined) kinds.add(typeName(expected.value));
      }),
      { numRuns: 800 },
    );
    // Else the rule would hold for want of values.
    expect(met.values).toBeGreaterThan(400);
    expect(Math.min(met.nulls, met.errors)).toBeGreaterThan(5);
    const wanted = ['array', 'bool', 'date', 'decimal', 'double', 'int', 'long', 'null', 'string'];
    expect([...kinds]).toEqual(expect.arrayContaining(wanted));
  });
});
