// oxlint-disable unicorn/no-thenable -- $cond and $switch call a field "then".
/** What each expression operator is given in a test, around one value. */
const BY_OPERATOR: Readonly<Record<string, (value: unknown) => unknown>> = {
  ...named('$divide $mod $log', (value) => [10, value]),
  ...named('$pow $atan2 $bitAnd $bitOr $bitXor $range', (value) => [value, 1]),
  ...named('$add $subtract $multiply', (value) => [value, 1]),
  ...named('$eq $ne $gt $gte $lt $lte $cmp $and $or $ifNull', (value) => [value, 1]),
  ...named('$not $isArray $type $isNumber $max $min $sum $avg $stdDevPop $stdDevSamp', (value) => [value]),
  $cond: (value) => [value, value, 1],
  $switch: (value) => ({ branches: [{ case: value, then: 1 }], default: value }),
  $in: (value) => [value, ['a', value]],
  $getField: (value) => ({ field: 'a', input: value }),
  $rand: () => ({}),
  ...named('$setEquals $setIsSubset $setUnion $setIntersection $setDifference', (value) => [value, ['a']]),
  ...named('$anyElementTrue $allElementsTrue', (value) => [value]),
  ...named('$arrayElemAt $slice $indexOfArray', (value) => [value, 1]),
  ...named('$concatArrays', (value) => [value, ['a']]),
  ...named('$firstN $lastN $maxN $minN', (input) => ({ input, n: 1 })),
  $map: (input) => ({ input, in: 1 }),
  $filter: (input) => ({ input, cond: true }),
  $reduce: (input) => ({ input, initialValue: 0, in: 0 }),
  $sortArray: (input) => ({ input, sortBy: 1 }),
  $zip: (value) => ({ inputs: [value] }),
  $setField: (input) => ({ field: 'a', input, value: 1 }),
  $unsetField: (input) => ({ field: 'a', input }),
  ...named('$dateAdd $dateSubtract', (startDate) => ({ startDate, unit: 'day', amount: 1 })),
  $dateDiff: (value) => ({ startDate: value, endDate: value, unit: 'day' }),
  $dateFromParts: (year) => ({ year }),
  $dateFromString: (dateString) => ({ dateString }),
  ...named('$dateToParts $dateToString', (date) => ({ date })),
  $dateTrunc: (date) => ({ date, unit: 'day' }),
  ...named('$ltrim $rtrim $trim', (input) => ({ input })),
  ...named('$regexFind $regexFindAll $regexMatch', (input) => ({ input, regex: 'a' })),
  ...named('$replaceOne $replaceAll', (input) => ({ input, find: 'a', replacement: 'b' })),
  ...named('$concat $split $strcasecmp $indexOfBytes $indexOfCP', (value) => [value, 'a']),
  ...named('$substr $substrBytes $substrCP', (value) => [value, 0, 1]),
  $let: (x) => ({ vars: { x }, in: '$$x' }),
  $convert: (input) => ({ input, to: 'int' }),
  $median: (input) => ({ input, method: 'approximate' }),
  $percentile: (input) => ({ input, p: [0.5], method: 'approximate' }),
  $meta: () => 'textScore',
};

function named(operators: string, argument: (value: unknown) => unknown) {
  return Object.fromEntries(operators.split(' ').map((operator) => [operator, argument]));
}

/** The operator over a value, in its plainest form. */
export const applied = (operator: string, value: unknown): Record<string, unknown> => ({
  [operator]: (BY_OPERATOR[operator] ?? ((only: unknown) => only))(value),
});
