/** The operands with which an operator never fails. */
export type FitOperands = 'anything' | 'arrays' | 'numbers' | 'shape';

const words = (...groups: readonly string[]): string[] => groups.flatMap((group) => group.split(' '));
const each = <T>(verdict: T, ...groups: readonly string[]): Record<string, T> =>
  Object.fromEntries(words(...groups).map((operator) => [operator, verdict]));

/**
 * Operators that a filter may contain: with any operands; with operands that are arrays, or numbers, for every row; or in one
 * form (`$in` with an array as its second operand, `$switch` with a default, `$getField` with a constant name).
 */
export const FILTER_OPERATORS: Readonly<Record<string, FitOperands>> = {
  ...each<FitOperands>(
    'anything',
    '$eq $ne $gt $gte $lt $lte $cmp',
    '$and $or $not $cond $ifNull',
    '$literal $type $isArray $isNumber $rand',
    // These ignore values that are no numbers, or compare in sort order.
    '$max $min $sum $avg $stdDevPop $stdDevSamp',
  ),
  ...each<FitOperands>(
    'arrays',
    '$size $setEquals $setIsSubset $setUnion $setIntersection $setDifference',
    '$anyElementTrue $allElementsTrue',
  ),
  // Results outside the range of their type become a wider type.
  ...each<FitOperands>('numbers', '$add $subtract $multiply'),
  ...each<FitOperands>('shape', '$in $switch $getField'),
};

/** Why a filter may not contain an operator. */
type FilterRefusal =
  /** It fails on values of some type, or on some values of the right type. */
  | 'fails'
  /** Nested bindings can multiply a value, so that one row takes any time at all, which reveals as much as a failure. */
  | 'repeats'
  /** Its result for some values differs between versions or is undocumented. */
  | 'unproven';

/** All other expression operators that a stage may contain. An operator in neither list is unknown and refused, too. */
export const REFUSED_IN_FILTERS: Readonly<Record<string, FilterRefusal>> = {
  ...each<FilterRefusal>(
    'fails',
    '$abs $ceil $divide $exp $floor $ln $log $log10 $mod $pow $round $sqrt $trunc $bitAnd $bitNot $bitOr $bitXor',
    '$sin $cos $tan $asin $acos $atan $atan2 $sinh $cosh $tanh $asinh $acosh $atanh $degreesToRadians $radiansToDegrees',
    '$arrayElemAt $arrayToObject $concatArrays $reverseArray $filter $first $firstN $indexOfArray $last $lastN $map $maxN $minN $objectToArray',
    '$range $reduce $slice $sortArray $zip $mergeObjects $setField $unsetField $binarySize $bsonSize',
    '$dateAdd $dateDiff $dateFromParts $dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc',
    '$dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond $minute $month $second',
    '$week $year $tsIncrement $tsSecond',
    '$concat $indexOfBytes $indexOfCP $ltrim $rtrim $trim $regexFind $regexFindAll $regexMatch $replaceOne $replaceAll',
    '$split $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $toLower $toUpper',
    '$toDate $toDecimal $toDouble $toInt $toLong $toObjectId $toString',
  ),
  ...each<FilterRefusal>('repeats', '$let'),
  ...each<FilterRefusal>(
    'unproven',
    '$convert $toBool $toUUID $toArray $toObject $toHashedIndexKey $createObjectId $subtype $sigmoid',
    '$median $percentile $meta $const',
  ),
};

/** Query operators that a `$match` may contain; none of them fails on a stored value of any type. */
export const MATCH_OPERATORS: ReadonlySet<string> = new Set(
  words(
    '$eq $ne $lt $lte $gt $gte $in $nin $all $exists $type $size $mod $regex $options $elemMatch $not',
    '$and $or $nor $expr $text $search $language $caseSensitive $diacriticSensitive $comment $sampleRate',
    '$geoWithin $geoIntersects $geometry $box $polygon $center $centerSphere',
  ),
);

/** What `$group`, `$bucket` and the like compute of many rows, where that is no expression as well. */
const ACCUMULATORS = words('$addToSet $push $count $top $topN $bottom $bottomN');

const EXPRESSION_OPERATORS: ReadonlySet<string> = new Set([
  ...Object.keys(FILTER_OPERATORS),
  ...Object.keys(REFUSED_IN_FILTERS),
  ...ACCUMULATORS,
]);

/** Whether it is known what an operator of an expression reads. Another one is refused, also when a later MongoDB has it. */
export function isExpressionOperator(name: string): boolean {
  return EXPRESSION_OPERATORS.has(name);
}

export const listExpressionOperators = (): string[] => [...EXPRESSION_OPERATORS];
