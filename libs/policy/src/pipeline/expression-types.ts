import {
  BOOLEAN,
  commonType,
  DATE,
  toListType,
  NULL,
  NUMBER,
  toObjectType,
  TEXT,
  typeAt,
  type ValueType,
} from '../model/value-type.js';
import { isPlainObject, isTyped, parseIsoDate, type PlainObject } from '../model/where.js';
import type { Frame } from './frame.js';

type Known = ValueType | undefined;

/** What is known of the values of an expression, as the caller wrote it. Never refuses: other checks do. */
export function typeOfExpression(expression: unknown, frame: Frame): Known {
  if (typeof expression === 'string') return typeOfText(expression, frame);
  if (Array.isArray(expression))
    return toListType(commonType(expression.map((entry) => typeOfExpression(entry, frame))));
  if (!isPlainObject(expression) || isTyped(expression)) return typeOfConstant(expression);
  const [operator, ...others] = Object.keys(expression);
  if (operator === undefined || !operator.startsWith('$'))
    return toObjectType((name) =>
      Object.hasOwn(expression, name) ? typeOfExpression(expression[name], frame) : undefined,
    );
  const result = others.length === 0 && Object.hasOwn(RESULTS, operator) ? RESULTS[operator] : undefined;
  return result?.(expression[operator], frame);
}

/** The type of a value that an accumulator of `$group` or of buckets makes. */
export function typeOfAccumulator(expression: unknown, frame: Frame): Known {
  const [operator, ...others] = isPlainObject(expression) ? Object.keys(expression) : [];
  if (operator === undefined || others.length > 0) return undefined;
  const operand = (expression as PlainObject)[operator];
  switch (operator) {
    case '$push':
    case '$addToSet':
      return toListType(typeOfExpression(operand, frame));
    // Of one value for each row, not of the entries of a list.
    case '$first':
    case '$last':
    case '$min':
    case '$max':
      return typeOfExpression(operand, frame);
    case '$firstN':
    case '$lastN':
    case '$minN':
    case '$maxN':
      return toListType(typeOfExpression(readMembers(operand)['input'], frame));
    case '$top':
    case '$bottom':
      return typeOfExpression(readMembers(operand)['output'], frame);
    case '$topN':
    case '$bottomN':
      return toListType(typeOfExpression(readMembers(operand)['output'], frame));
    default:
      return typeOfExpression(expression, frame);
  }
}

/** The value of an expression that is one whatever the row: null where it depends on the row. */
export function readConstant(expression: unknown): { readonly value: unknown } | null {
  if (typeof expression === 'string') return expression.startsWith('$') ? null : { value: expression };
  if (Array.isArray(expression)) {
    const entries = expression.map(readConstant);
    return entries.some((entry) => entry === null) ? null : { value: entries.map((entry) => entry?.value) };
  }
  if (!isPlainObject(expression) || isTyped(expression)) return { value: expression };
  const [operator, ...others] = Object.keys(expression);
  return operator === '$literal' && others.length === 0 ? { value: expression[operator] } : null;
}

function typeOfConstant(value: unknown): Known {
  if (value === null) return NULL;
  if (Array.isArray(value)) return toListType(commonType(value.map(typeOfConstant)));
  if (value instanceof Date) return DATE;
  if (isTyped(value)) return value.__type === 'Date' ? DATE : undefined;
  if (isPlainObject(value))
    return toObjectType((name) => (Object.hasOwn(value, name) ? typeOfConstant(value[name]) : undefined));
  switch (typeof value) {
    case 'string':
      return parseIsoDate(value) ? { ...TEXT, iso: value } : TEXT;
    case 'number':
      return NUMBER;
    case 'boolean':
      return BOOLEAN;
    default:
      return undefined;
  }
}

function typeOfText(text: string, frame: Frame): Known {
  if (!text.startsWith('$')) return typeOfConstant(text);
  if (!text.startsWith('$$')) return frame.findType(text.slice(1), true);
  const [name = '', ...path] = text.slice(2).split('.');
  if (name === 'ROOT' || name === 'CURRENT')
    return path.length === 0 ? frame.documentType : frame.findType(path.join('.'), true);
  if (name === 'NOW') return DATE;
  if (name === 'REMOVE') return NULL;
  return typeAt(frame.variableType(name), path, true);
}

export const readMembers = (operand: unknown): PlainObject => (isPlainObject(operand) ? operand : {});

/** Of an operator with one operand, which may stand in a list of one. */
export const listOperands = (operand: unknown): readonly unknown[] =>
  Array.isArray(operand) ? operand : [operand];

const takeEntries = (type: Known): Known => (type?.type === 'Array' ? type.entries : undefined);

/** A frame with the variable of `$map` or `$filter`. */
export function withElement(
  { input, as = 'this' }: PlainObject,
  frame: Frame,
  document: Frame | null = null,
): Frame {
  return frame.bind([[String(as), document, takeEntries(typeOfExpression(input, frame))]]);
}

/** The types of `$$value` and `$$this` in a `$reduce`. */
export function findReducedTypes({ input, initialValue, in: body }: PlainObject, frame: Frame) {
  const element = takeEntries(typeOfExpression(input, frame));
  const initial = typeOfExpression(initialValue, frame);
  const step = typeOfExpression(
    body,
    frame.bind([
      ['this', null, element],
      ['value', null, initial],
    ]),
  );
  return { element, value: commonType([initial, step]) };
}

const always = (type: ValueType) => (): ValueType => type;

/** `onError` and `onNull` may give another value. */
const convertTo =
  (type: Known) =>
  (operand: unknown, frame: Frame): Known => {
    const { onError = null, onNull = null } = readMembers(operand);
    return commonType([type, typeOfExpression(onError, frame), typeOfExpression(onNull, frame)]);
  };

const BSON_NAMES: ReadonlyMap<unknown, ValueType> = new Map<unknown, ValueType>([
  ...['date', 9].map((to) => [to, DATE] as const),
  ...['int', 'long', 'double', 'decimal', 1, 16, 18, 19].map((to) => [to, NUMBER] as const),
  ...['bool', 8].map((to) => [to, BOOLEAN] as const),
  ...['string', 2].map((to) => [to, TEXT] as const),
]);

const all = (operand: unknown, frame: Frame): readonly Known[] =>
  listOperands(operand).map((each) => typeOfExpression(each, frame));

const same = (operand: unknown, frame: Frame): Known => commonType(all(operand, frame));
const first = (operand: unknown, frame: Frame): Known => all(operand, frame)[0];
const findInputType = (operand: unknown, frame: Frame): Known =>
  typeOfExpression(readMembers(operand)['input'], frame);
const entryOfFirst = (operand: unknown, frame: Frame): Known => takeEntries(first(operand, frame));

/** Of one operand the entries, if it is a list. */
function extreme(operand: unknown, frame: Frame): Known {
  const types = all(operand, frame);
  const [only] = types;
  return types.length === 1 && only?.type === 'Array' ? only.entries : commonType(types);
}

/** Milliseconds are added to dates; other sums are numbers. */
function sum(operand: unknown, frame: Frame): Known {
  const types = all(operand, frame);
  if (types.some((type) => type?.type === 'Date')) return DATE;
  return types.every((type) => type?.type === 'Number' || type?.type === 'Null') ? NUMBER : undefined;
}

function difference(operand: unknown, frame: Frame): Known {
  const [left, right] = all(operand, frame);
  if (left?.type === 'Date')
    return right?.type === 'Date' || right?.iso !== undefined
      ? NUMBER
      : right?.type === 'Number'
        ? DATE
        : undefined;
  if (left?.iso !== undefined && right?.type === 'Date') return NUMBER;
  return left?.type === 'Number' ? NUMBER : undefined;
}

/** The results of `$cond`, `$switch` and `$ifNull`. */
export function listBranches(operator: string, operand: unknown): readonly unknown[] {
  if (operator === '$ifNull') return listOperands(operand);
  if (operator === '$cond') {
    const { then, else: otherwise } = readMembers(operand);
    return Array.isArray(operand) ? operand.slice(1) : [then, otherwise];
  }
  const { branches, default: otherwise } = readMembers(operand);
  const results = Array.isArray(branches) ? branches.map((branch) => readMembers(branch)['then']) : [];
  return otherwise === undefined ? results : [...results, otherwise];
}

const findBranchType =
  (operator: string) =>
  (operand: unknown, frame: Frame): Known =>
    commonType(listBranches(operator, operand).map((branch) => typeOfExpression(branch, frame)));

function field(operand: unknown, frame: Frame): Known {
  const { field: name = operand, input = '$$CURRENT' } = readMembers(operand);
  const plain = readConstant(name)?.value;
  return typeof plain === 'string' ? typeOfExpression(input, frame)?.member?.(plain) : undefined;
}

/** The last document that has a member gives it, and only a written one is known to have it. */
function mergeTypes(operand: unknown, frame: Frame): ValueType {
  const documents = listOperands(operand).toReversed();
  return toObjectType((name) => {
    const found: ValueType[] = [];
    for (const document of documents) {
      const type = typeOfExpression(document, frame)?.member?.(name);
      if (type) found.push(type);
      if (isPlainObject(document) && Object.hasOwn(document, name)) return commonType(found);
    }
    const type = commonType(found);
    return found.length > 0 && type ? { ...type, uncertain: true } : undefined;
  });
}

const words = (text: string): string[] => text.split(' ');
type Result = (operand: unknown, frame: Frame) => Known;
const each = (result: Result, operators: string): Record<string, Result> =>
  Object.fromEntries(words(operators).map((operator) => [operator, result]));

/** The results of operators. Of one that is missing nothing is known. */
const RESULTS: Readonly<Record<string, Result>> = {
  ...each(
    always(NUMBER),
    '$abs $acos $acosh $asin $asinh $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize ' +
      '$ceil $cmp $cos $cosh $count $dateDiff $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $divide $exp $floor $hour ' +
      '$indexOfArray $indexOfBytes $indexOfCP $isoDayOfWeek $isoWeek $isoWeekYear $ln $log $log10 $median $millisecond $minute ' +
      '$mod $month $multiply $pow $radiansToDegrees $rand $round $second $sin $sinh $size $sqrt $stdDevPop $stdDevSamp ' +
      '$strLenBytes $strLenCP $strcasecmp $sum $tan $tanh $toDecimal $toDouble $toInt $toLong $trunc $week $year',
  ),
  ...each(always(DATE), '$toDate $dateTrunc $dateAdd $dateSubtract $dateFromParts'),
  ...each(
    always(BOOLEAN),
    '$allElementsTrue $and $anyElementTrue $eq $gt $gte $in $isArray $isNumber $lt $lte $ne $not $or $regexMatch $setEquals ' +
      '$setIsSubset $toBool',
  ),
  ...each(
    always(TEXT),
    '$concat $ltrim $replaceAll $replaceOne $rtrim $substr $substrBytes $substrCP $toLower $toString $toUpper $trim $type',
  ),
  $dateToString: convertTo(TEXT),
  $dateFromString: convertTo(DATE),
  $convert: (operand, frame) => {
    const { to } = readMembers(operand);
    return convertTo(BSON_NAMES.get(isPlainObject(to) ? to['type'] : to))(operand, frame);
  },
  $add: sum,
  $subtract: difference,
  $max: extreme,
  $min: extreme,
  $ifNull: findBranchType('$ifNull'),
  $cond: findBranchType('$cond'),
  $switch: findBranchType('$switch'),
  $literal: (value) => typeOfConstant(value),
  ...each(entryOfFirst, '$arrayElemAt $first $last'),
  ...each(first, '$reverseArray $setDifference $slice'),
  ...each(same, '$concatArrays $setIntersection $setUnion'),
  ...each(findInputType, '$filter $firstN $lastN $maxN $minN $sortArray'),
  $map: (operand, frame) => {
    const form = readMembers(operand);
    return toListType(typeOfExpression(form['in'], withElement(form, frame)));
  },
  $reduce: (operand, frame) => findReducedTypes(readMembers(operand), frame).value,
  $let: (operand, frame) => {
    const { vars, in: body } = readMembers(operand);
    const bound = Object.entries(readMembers(vars)).filter(([name]) => /^[a-z]\w{0,63}$/.test(name));
    return typeOfExpression(
      body,
      frame.bind(bound.map(([name, value]) => [name, null, typeOfExpression(value, frame)] as const)),
    );
  },
  $getField: field,
  $mergeObjects: mergeTypes,
  $setField: (operand, frame) => {
    const { field: name, input, value } = readMembers(operand);
    const [before, set] = [typeOfExpression(input, frame), readConstant(name)?.value];
    return toObjectType((member) =>
      member === set ? typeOfExpression(value, frame) : before?.member?.(member),
    );
  },
  $unsetField: findInputType,
  $objectToArray: always(toListType(toObjectType((name) => (name === 'k' ? TEXT : undefined)))),
  $range: always(toListType(NUMBER)),
  $split: always(toListType(TEXT)),
};
