// oxlint-disable unicorn/no-thenable -- $cond and $switch call a field "then".
import fc from 'fast-check';

/** Expressions that cannot fail on a row, with every operator that may stand in a filter. */
export function filterExpression(reference: fc.Arbitrary<string>): fc.Arbitrary<unknown> {
  const guarded = (test: string, otherwise: unknown) =>
    reference.map((it) => ({ $cond: [{ [test]: it }, it, otherwise] }));
  const list = fc.oneof(
    guarded('$isArray', []),
    fc.constantFrom(['plain 1', 2], { $literal: ['plain 1', 'ZEKRET'] }),
    fc.tuple(reference, reference),
  );
  const number = fc.oneof(guarded('$isNumber', 0), fc.integer({ min: -2, max: 5 }));
  const pairOf = <T>(operators: string, operand: fc.Arbitrary<T>) =>
    fc
      .tuple(fc.constantFrom(...operators.split(' ')), operand, operand)
      .map(([operator, one, other]) => ({ [operator]: [one, other] }));
  const onlyOf = <T>(operators: string, operand: fc.Arbitrary<T>) =>
    fc
      .tuple(fc.constantFrom(...operators.split(' ')), operand)
      .map(([operator, it]) => ({ [operator]: [it] }));
  return fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      { weight: 5, arbitrary: reference },
      { weight: 1, arbitrary: fc.constantFrom<unknown>(1, 'plain 1', null, { $literal: '$x' }) },
      { weight: 6, arbitrary: pairOf('$eq $ne $gt $gte $lt $lte $cmp', tie('any')) },
      { weight: 3, arbitrary: pairOf('$and $or $ifNull $max $min', tie('any')) },
      {
        weight: 3,
        arbitrary: onlyOf('$not $type $isArray $isNumber $sum $avg $stdDevPop $stdDevSamp', tie('any')),
      },
      fc.tuple(tie('any'), tie('any'), tie('any')).map((parts) => ({ $cond: parts })),
      fc.tuple(tie('any'), tie('any'), tie('any')).map(([test, then, otherwise]) => ({
        $switch: { branches: [{ case: test, then: then }], default: otherwise },
      })),
      fc.tuple(tie('any'), list).map((operands) => ({ $in: operands })),
      {
        weight: 2,
        arbitrary: pairOf('$setEquals $setIsSubset $setUnion $setIntersection $setDifference', list),
      },
      onlyOf('$size $anyElementTrue $allElementsTrue', list),
      { weight: 2, arbitrary: pairOf('$add $subtract $multiply', number) },
      fc
        .tuple(reference, tie('any'))
        .map(([path, input]) => ({ $getField: { field: path.replace(/^\$+(\w+\.)*/, ''), input } })),
      fc.constant({ $lt: [{ $rand: {} }, 2] }),
    ),
  })).any;
}

/** Every `$expr` of a filter in a request, at any depth. */
export function filterExpressionsIn(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(filterExpressionsIn);
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, member]: [string, unknown]) =>
    key === '$expr' ? [member] : filterExpressionsIn(member),
  );
}
