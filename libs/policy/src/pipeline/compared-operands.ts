import { isDeepStrictEqual } from 'node:util';
import { cutText, refuse } from '#core';
import { ALL_TEXT, compareValue, DATE, NUMBER_TEXT, type ValueType } from '../model/value-type.js';
import { isPlainObject, parseIsoDate, type PlainObject, toTypedDate } from '../model/where.js';
import { listBranches, readConstant, readMembers, typeOfExpression } from './expression-types.js';
import type { Frame } from './frame.js';
import { checkCount, checkUnit, noteDateFormat, notePointer } from './unlikely-operands.js';

/**
 * The operand of an operator with what the caller wrote in it in the form in which it is compared: with the other operand, with
 * the entries of a list, or as the date that the operator takes. Names are still the caller's.
 * @throws Refused `invalid_query` for what can never match
 */
export function convertOperand(operator: string, operand: unknown, frame: Frame): unknown {
  const compare = Object.hasOwn(COMPARING, operator) ? COMPARING[operator] : undefined;
  return compare ? compare(operand, frame) : operand;
}

/** The boundaries of `$bucket`, as values of what is grouped. */
export function convertBoundaries(
  boundaries: readonly unknown[],
  groupBy: unknown,
  frame: Frame,
): readonly unknown[] {
  return boundaries.map((boundary) => beside(boundary, groupBy, typeOfExpression(groupBy, frame), frame));
}

type Compare = (operand: unknown, frame: Frame) => unknown;

/** A constant beside values of a type; anything else unchanged. */
function beside(value: unknown, other: unknown, type: ValueType | undefined, frame: Frame): unknown {
  if (readConstant(other)) return value;
  const constant = readConstant(value);
  if (!constant) return type?.type === 'Date' ? asDate(value, frame) : value;
  const compared = compareValue(constant.value, type, { with: describeExpression(other), note: frame.note });
  if (typeof compared === 'string' && type?.type === 'Number') return exact(compared, type);
  if (isDeepStrictEqual(compared, constant.value)) return value;
  return Array.isArray(compared) ? compared.map(literal) : compared;
}

/** A text that would be a reference. */
const literal = (value: unknown): unknown =>
  typeof value === 'string' && value.startsWith('$') ? { $literal: value } : value;

/** Digits that a number holds exactly are compared as that number, wherever they stand. */
function exact(digits: string, type: ValueType): unknown {
  if (String(Number(digits)) === digits) return Number(digits);
  // What a sample says of a column is not known where the value is stored.
  if (type.digits) return type.uncertain ? { $toDecimal: digits } : digits;
  return { $toLong: digits };
}

/** What a refusal calls an expression. */
function describeExpression(expression: unknown): string {
  if (typeof expression === 'string') return expression;
  const [operator = 'the expression'] = Object.keys(readMembers(expression));
  return operator;
}

const pair: Compare = (operand, frame) => {
  if (!Array.isArray(operand) || operand.length !== 2) return operand;
  const [left, right] = operand as [unknown, unknown];
  notePointer(left, right, frame);
  notePointer(right, left, frame);
  return [beside(left, right, scalar(right, frame), frame), beside(right, left, scalar(left, frame), frame)];
};

/** A list is compared as a whole: its entries say nothing. */
function scalar(expression: unknown, frame: Frame): ValueType | undefined {
  const type = typeOfExpression(expression, frame);
  return type?.type === 'Array' ? ANY_LIST : type;
}
const ANY_LIST: ValueType = { type: 'Object' };

const findEntryType = (expression: unknown, frame: Frame): ValueType | undefined => {
  const type = typeOfExpression(expression, frame);
  return type?.type === 'Array' ? type.entries : undefined;
};

const isQuoted = (list: unknown): list is { readonly $literal: readonly unknown[] } =>
  isPlainObject(list) && Array.isArray(list['$literal']);

/** A list in a `$literal`: what is no date in it stays quoted. */
function quoteList(
  list: { readonly $literal: readonly unknown[] },
  other: unknown,
  type: ValueType | undefined,
  frame: Frame,
): unknown {
  const quoted = list.$literal.map((entry) => ({ $literal: entry }));
  const entries = quoted.map((entry) => beside(entry, other, type, frame));
  return entries.every((entry, index) => entry === quoted[index]) ? list : entries;
}

/** `[value, list]`. */
const member: Compare = (operand, frame) => {
  if (!Array.isArray(operand) || operand.length !== 2) return operand;
  const [value, list] = operand as [unknown, unknown];
  const type = scalar(value, frame);
  if (isQuoted(list)) return [value, quoteList(list, value, type, frame)];
  if (Array.isArray(list)) list.forEach((entry) => notePointer(entry, value, frame));
  if (Array.isArray(list)) {
    return [alike(value, list, frame), list.map((entry) => beside(entry, value, type, frame))];
  }
  return [beside(value, list, findEntryType(list, frame), frame), list];
};

/** A constant beside expressions of one known type. */
function alike(value: unknown, others: readonly unknown[], frame: Frame): unknown {
  if (!readConstant(value)) return value;
  const other = others.find((each) => !readConstant(each) && typeOfExpression(each, frame));
  return other === undefined ? value : beside(value, other, scalar(other, frame), frame);
}

/** Operands that are compared with one another, or give one value. */
function together(operands: readonly unknown[], frame: Frame): readonly unknown[] {
  const known = operands.find((each) => !readConstant(each) && typeOfExpression(each, frame));
  if (known === undefined) return operands;
  const type = scalar(known, frame);
  return operands.map((each) => (readConstant(each) ? beside(each, known, type, frame) : each));
}

/** Of lists whose entries are compared. */
const lists: Compare = (operand, frame) => {
  if (!Array.isArray(operand)) return operand;
  const known = (operand as unknown[]).find((each) => !readConstant(each) && findEntryType(each, frame));
  if (known === undefined) return operand;
  const type = findEntryType(known, frame);
  return (operand as unknown[]).map((each) => {
    if (isQuoted(each)) return quoteList(each, known, type, frame);
    return Array.isArray(each) && readConstant(each)
      ? each.map((entry) => beside(entry, known, type, frame))
      : each;
  });
};

/** `[list, value, …]`. */
const convertSearched: Compare = (operand, frame) => {
  if (!Array.isArray(operand)) return operand;
  const [list, value, ...rest] = operand as unknown[];
  return [list, beside(value, list, findEntryType(list, frame), frame), ...rest];
};

const extremes: Compare = (operand, frame) => (Array.isArray(operand) ? together(operand, frame) : operand);

/** ISO text beside dates is a date: what an operator gives has one type then. Other values stay. */
function unifyBranches(branches: readonly unknown[], frame: Frame): (branch: unknown) => unknown {
  const holdsDates = branches.some((branch) => typeOfExpression(branch, frame)?.type === 'Date');
  return (branch) => (holdsDates ? asDate(branch, frame) : branch);
}

/** The date that a text is, also a text that a variable or a computed column always has. */
export function asDate(expression: unknown, frame: Frame): unknown {
  const iso = Array.isArray(expression) ? undefined : typeOfExpression(expression, frame)?.iso;
  const date = typeof iso === 'string' ? parseIsoDate(iso) : null;
  return date ? toTypedDate(date) : expression;
}

const convertBranches =
  (operator: string): Compare =>
  (operand, frame) => {
    const unify = unifyBranches(listBranches(operator, operand), frame);
    if (operator === '$ifNull') return Array.isArray(operand) ? operand.map(unify) : operand;
    if (Array.isArray(operand)) return operand.map((part, index) => (index === 0 ? part : unify(part)));
    if (!isPlainObject(operand)) return operand;
    const { branches } = operand;
    return {
      ...operand,
      ...withEach(operand, ['then', 'else', 'default'], unify),
      ...(Array.isArray(branches) && {
        branches: branches.map((branch) =>
          isPlainObject(branch) ? { ...branch, ...withEach(branch, ['then'], unify) } : branch,
        ),
      }),
    };
  };

function withEach(
  form: PlainObject,
  names: readonly string[],
  convert: (value: unknown) => unknown,
): PlainObject {
  return Object.fromEntries(names.filter((name) => name in form).map((name) => [name, convert(form[name])]));
}

/** Dates that an operator takes by name. */
const dates =
  (...names: readonly string[]): Compare =>
  (operand, frame) =>
    isPlainObject(operand)
      ? { ...operand, ...withEach(operand, names, (value) => asDate(value, frame)) }
      : operand;

/** Dates that an operator takes by name, in a unit of time. */
const datesIn =
  (operator: string, ...names: readonly string[]): Compare =>
  (operand, frame) => {
    checkUnit(operator, operand);
    return dates(...names)(operand, frame);
  };

const writtenDate: Compare = (operand, frame) => {
  noteDateFormat(operand, frame);
  return dates('date')(operand, frame);
};

/** The one date that an operator takes, also by name. */
const ofDate: Compare = (operand, frame) => {
  if (Array.isArray(operand))
    return operand.length === 1 ? operand.map((value) => asDate(value, frame)) : operand;
  return isPlainObject(operand) && 'date' in operand ? dates('date')(operand, frame) : asDate(operand, frame);
};

/** The time between two dates, or a difference of numbers. */
const convertSubtracted: Compare = (operand, frame) => {
  if (!Array.isArray(operand)) return operand;
  const isDate = (expression: unknown) => typeOfExpression(expression, frame)?.type === DATE.type;
  if (operand.some(isDate)) return operand.map((value) => asDate(value, frame));
  return refuseTexts('$subtract')(operand, frame);
};

/**
 * Checks operands whose types are known: of a wrong one the database fails, or answers 0, and does not say which it was.
 * @param explain why the operand is refused; null: it is not
 * @throws Refused `invalid_query`
 */
const refuseOperands =
  (explain: (type: ValueType, written: string, value: unknown) => string | null): Compare =>
  (operand, frame) => {
    for (const value of [operand].flat()) {
      const type = typeOfExpression(value, frame);
      if (!type || type === ALL_TEXT || type.uncertain) continue;
      const reason = explain(type, cutText(describeExpression(value), 128), value);
      if (reason !== null) throw refuse.invalidQuery(reason);
    }
    return operand;
  };

const refuseTexts = (operator: string): Compare =>
  refuseOperands(({ type }, written) => {
    if (type !== 'String') return null;
    const instead = NUMBER_TEXT.test(written)
      ? `write the number, or {"$numberDecimal":"${written}"} for its digits`
      : 'make a number of it with $toDouble or $toDecimal, or with $convert where some are none';
    return `${operator} takes numbers, and '${written}' is text: ${instead}`;
  });

/** What the database adds up to 0, or to nothing, without a word. */
const NEVER_ADDED: ReadonlySet<ValueType['type'] | undefined> = new Set<ValueType['type']>([
  'String',
  'Boolean',
  'Date',
  'Pointer',
  'Relation',
  'GeoPoint',
  'Polygon',
  'File',
  'Bytes',
]);

const addNumbers = (operator: string): Compare =>
  refuseOperands(({ type }, written) =>
    NEVER_ADDED.has(type)
      ? `${operator} takes numbers, and '${written}' is of type ${type}: count with {"$sum":1}, take $min or $max, ` +
        'or make numbers of it with $cond or $toDouble'
      : null,
  );

/** What `$concat` does not take, and what of it has a text inside. */
const NO_TEXTS: ReadonlyMap<ValueType['type'], 'whole' | 'parts'> = new Map<
  ValueType['type'],
  'whole' | 'parts'
>([
  ['Number', 'whole'],
  ['Date', 'whole'],
  ['Boolean', 'whole'],
  ['Array', 'parts'],
  ['Object', 'parts'],
]);

const refuseOtherThanTexts = refuseOperands(({ type }, written, value) => {
  const kind = NO_TEXTS.get(type);
  if (kind === undefined) return null;
  const instead =
    kind === 'parts'
      ? 'name a text in it by its path'
      : `make a text of it: {"$toString":${JSON.stringify(value)}}`;
  return `$concat takes texts, and '${written}' is of type ${type}: ${instead}`;
});

const ADDS: ReadonlySet<string> = new Set(['$sum', '$avg', '$stdDevPop', '$stdDevSamp']);

/**
 * Accumulators of groups add one number for each row: of a list or an object nothing, whatever is in it.
 * @throws Refused `invalid_query`
 */
export function checkAccumulators(outputs: unknown, frame: Frame): void {
  for (const accumulator of Object.values(readMembers(outputs)))
    for (const [operator, added] of Object.entries(readMembers(accumulator))) {
      checkCount(operator, added);
      if (ADDS.has(operator)) checkAdded(operator, added, frame);
    }
}

function checkAdded(operator: string, added: unknown, frame: Frame): void {
  const type = typeOfExpression(added, frame);
  const written = cutText(describeExpression(added), 128);
  if (!type || type === ALL_TEXT || type.type === 'Number' || type.type === 'Null') return;
  if (type.uncertain) {
    frame.note?.(
      `'${written}' held values of type ${type.type} in the documents that were looked at, and ${operator} adds numbers alone: ` +
        'make numbers of them with $toDouble, or with $convert where some are none',
    );
  } else if (type.type === 'Array' || type.type === 'Object') {
    const instead =
      type.type === 'Array'
        ? `put {"$unwind":"${written.split('.', 1)[0]}"} in front, or add the entries of each row: {"${operator}":{"$sum":"${written}"}}`
        : `name a number in it by its path, such as ${written}.NAME`;
    throw refuse.invalidQuery(
      `${operator} takes one number of each row, and '${written}' is of type ${type.type}: ${instead}`,
    );
  }
}

const each = (compare: Compare, operators: string): Record<string, Compare> =>
  Object.fromEntries(operators.split(' ').map((operator) => [operator, compare]));

const COMPARING: Readonly<Record<string, Compare>> = {
  ...each(pair, '$eq $ne $gt $gte $lt $lte $cmp'),
  $in: member,
  $indexOfArray: convertSearched,
  ...each(lists, '$setDifference $setEquals $setIntersection $setIsSubset'),
  ...each(extremes, '$max $min'),
  $ifNull: convertBranches('$ifNull'),
  $cond: convertBranches('$cond'),
  $switch: convertBranches('$switch'),
  $subtract: convertSubtracted,
  $concat: refuseOtherThanTexts,
  ...Object.fromEntries(
    [
      '$add',
      '$multiply',
      '$divide',
      '$mod',
      '$pow',
      '$round',
      '$abs',
      '$ceil',
      '$floor',
      '$trunc',
      '$sqrt',
    ].map((name) => [name, refuseTexts(name)]),
  ),
  ...Object.fromEntries(
    ['$sum', '$avg', '$stdDevPop', '$stdDevSamp'].map((name) => [name, addNumbers(name)]),
  ),
  ...each(
    ofDate,
    '$dateToParts $dayOfMonth $dayOfWeek $dayOfYear $hour $isoDayOfWeek $isoWeek $isoWeekYear $millisecond $minute $month $second ' +
      '$week $year',
  ),
  $dateToString: writtenDate,
  $dateTrunc: datesIn('$dateTrunc', 'date'),
  ...Object.fromEntries(
    ['$dateAdd', '$dateDiff', '$dateSubtract'].map((name) => [name, datesIn(name, 'startDate', 'endDate')]),
  ),
};
