/**
 * Expression operators in a filter. MongoDB promises no order in which the members of a filter are evaluated, merges `$match` stages
 * and moves them, so a caller's condition may be evaluated on rows that tenant and rights withhold. One that fails there fails the
 * call, and tells what the row holds. So only what cannot fail on any value may stand in a filter.
 */

/** What operands an operator takes without ever failing. */
export type FitOperands = 'anything' | 'arrays' | 'numbers' | 'shape';

const words = (...groups: readonly string[]): string[] => groups.flatMap((group) => group.split(' '));
const each = <T>(verdict: T, ...groups: readonly string[]): Record<string, T> =>
  Object.fromEntries(words(...groups).map((operator) => [operator, verdict]));

/**
 * Operators that may stand in a filter: with any operands; with operands that are arrays, or numbers, whatever the row holds; or in
 * one shape (`$in` with an array behind it, `$switch` with a default, `$getField` with a written name).
 */
export const FILTER_OPERATORS: Readonly<Record<string, FitOperands>> = {
  ...each<FitOperands>(
    'anything',
    '$eq $ne $gt $gte $lt $lte $cmp',
    '$and $or $not $cond $ifNull',
    '$literal $type $isArray $isNumber $rand',
    // These leave out what is no number, or compare as sorting does.
    '$max $min $sum $avg $stdDevPop $stdDevSamp',
  ),
  ...each<FitOperands>(
    'arrays',
    '$size $setEquals $setIsSubset $setUnion $setIntersection $setDifference',
    '$anyElementTrue $allElementsTrue',
  ),
  // Sums and products that leave the range of their type go on as a wider one.
  ...each<FitOperands>('numbers', '$add $subtract $multiply'),
  ...each<FitOperands>('shape', '$in $switch $getField'),
};

/** Why an operator may not stand in a filter. */
export type FilterRefusal =
  /** It fails on values of some type, or on some values of the right one. */
  | 'fails'
  /** A value under a name can be repeated within itself: the time of one row is then any time at all, which tells as much as a failure. */
  | 'repeats'
  /** What it does with some values differs between versions, or is not written down. */
  | 'unproven';

/** Every other expression operator of MongoDB. One that stands in neither list is unknown, and refused as well. */
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

/** Operators of the query language that a `$match` may hold; none of them fails on a stored value, whatever its type. */
export const MATCH_OPERATORS: ReadonlySet<string> = new Set(
  words(
    '$eq $ne $lt $lte $gt $gte $in $nin $all $exists $type $size $mod $regex $options $elemMatch $not',
    '$and $or $nor $expr $text $search $language $caseSensitive $diacriticSensitive $comment $sampleRate',
    '$geoWithin $geoIntersects $geometry $box $polygon $center $centerSphere',
  ),
);
