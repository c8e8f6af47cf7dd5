import { cutText, Refused, refuse } from '#core';
import { isPlainObject, type PlainObject } from '../model/where.js';
import { constantText } from './deny-rules.js';
import { listOperands } from './expression-types.js';
import { FILTER_OPERATORS, type FitOperands, MATCH_OPERATORS, REFUSED_IN_FILTERS } from './operators.js';

/*
 * Expression operators in a filter. MongoDB does not define the order in which the members of a filter are evaluated; it merges
 * `$match` stages and moves them. A condition of the caller may therefore run on rows that tenant and rights withhold. An error
 * there fails the call and reveals what the row holds. So a filter may only contain what cannot fail on any value.
 */

/**
 * The filter must not be able to fail on any row: it may run on rows that are withheld from the caller.
 * @param filter a `$match`, before or after its names were resolved
 * @throws Refused `invalid_query` with a text that explains what to write instead
 */
export function assertCannotFail(filter: unknown): void {
  if (Array.isArray(filter)) {
    for (const branch of filter) assertCannotFail(branch);
    return;
  }
  if (!isPlainObject(filter)) return;
  for (const [key, value] of Object.entries(filter)) {
    if (key === '$expr') assertTotal(value);
    else if (key.startsWith('$') && !MATCH_OPERATORS.has(key)) {
      throw refuse.invalidQuery(`Operator '${cutText(key, 64)}' cannot be used in a $match`);
    } else assertCannotFail(value);
  }
}

function assertTotal(expression: unknown): void {
  if (Array.isArray(expression)) return expression.forEach(assertTotal);
  if (!isPlainObject(expression)) return;
  for (const [key, operand] of Object.entries(expression)) {
    if (key.startsWith('$')) assertTotalOperator(key, operand);
    else assertTotal(operand);
  }
}

function assertTotalOperator(operator: string, operand: unknown): void {
  if (operator === '$literal') return;
  const fit = Object.hasOwn(FILTER_OPERATORS, operator) ? FILTER_OPERATORS[operator] : undefined;
  if (fit === undefined) throw notInFilters(operator);
  if (!FITS[fit](operator, operand)) throw notInFilters(operator, fit);
  assertTotal(operand);
}

/** Whether the operands are of the kind that the operator needs, for every row. */
const FITS: Readonly<Record<FitOperands, (operator: string, operand: unknown) => boolean>> = {
  anything: () => true,
  arrays: (_, operand) => listOperands(operand).every(isAlways.array),
  numbers: (_, operand) => listOperands(operand).every(isAlways.number),
  shape: (operator, operand) => SHAPES[operator]?.(operand) ?? false,
};

const SHAPES: Readonly<Record<string, (operand: unknown) => boolean>> = {
  $in: (operand) => Array.isArray(operand) && operand.length === 2 && isAlways.array(operand[1]),
  $switch: (operand) => isPlainObject(operand) && operand['default'] !== undefined,
  $getField: (operand) =>
    constantText(isPlainObject(operand) && 'field' in operand ? operand['field'] : operand) !== null,
};

const ARRAYS = new Set(['$setUnion', '$setIntersection', '$setDifference']);
const NUMBERS = new Set(['$add', '$subtract', '$multiply', '$size', '$cmp', '$sum']);

/** Whether an expression returns an array, or a number, for every row. Its operands are checked separately. */
const isAlways = {
  array: (expression: unknown): boolean =>
    Array.isArray(expression) ||
    gives(expression, ARRAYS, Array.isArray) ||
    isGuarded(expression, '$isArray', isAlways.array),
  number: (expression: unknown): boolean =>
    typeof expression === 'number' ||
    gives(expression, NUMBERS, (value) => typeof value === 'number') ||
    isGuarded(expression, '$isNumber', isAlways.number),
};

function gives(
  expression: unknown,
  operators: ReadonlySet<string>,
  isOf: (value: unknown) => boolean,
): boolean {
  const [operator, operand, ...others] = isPlainObject(expression) ? Object.entries(expression).flat() : [];
  if (typeof operator !== 'string' || others.length > 0) return false;
  return operator === '$literal' ? isOf(operand) : operators.has(operator);
}

/**
 * `{ $cond: [{ $isArray: "$tags" }, "$tags", []] }`. Correct in any order of evaluation: no part can fail, so it does not matter
 * whether the database skips the branch that does not apply.
 */
function isGuarded(
  expression: unknown,
  test: '$isArray' | '$isNumber',
  isKind: (expression: unknown) => boolean,
): boolean {
  const cond = isPlainObject(expression) && Object.keys(expression).length === 1 ? expression['$cond'] : null;
  const parts = isPlainObject(cond) ? [cond['if'], cond['then'], cond['else']] : cond;
  if (!Array.isArray(parts) || parts.length !== 3) return false;
  const [asked, then, otherwise] = parts as unknown[];
  if (!isKind(otherwise)) return false;
  if (isKind(then)) return true;
  if (typeof then !== 'string' || !then.startsWith('$') || !isPlainObject(asked)) return false;
  const [subject, ...more] = Object.keys(asked).length === 1 ? listOperands(asked[test]) : [];
  return subject === then && more.length === 0;
}

const COMPUTE_FIRST =
  'Compute it in a stage first and match on the result: ' +
  '[{ "$addFields": { "computed": … } }, { "$match": { "computed": … } }]';

const INSTEAD: Readonly<Record<FitOperands, (operator: string) => string>> = {
  anything: () => COMPUTE_FIRST,
  arrays: (operator) =>
    `Give it arrays whatever the row holds: { "${operator}": { "$cond": [{ "$isArray": "$field" }, "$field", []] } }. Or: ${COMPUTE_FIRST}`,
  numbers: (operator) =>
    `Give it numbers whatever the row holds: { "${operator}": [{ "$cond": [{ "$isNumber": "$field" }, "$field", 0] }, 1] }. Or: ${COMPUTE_FIRST}`,
  shape: (operator) => `${SHAPE_TEXTS[operator] ?? ''} ${COMPUTE_FIRST}`,
};

const SHAPE_TEXTS: Readonly<PlainObject & Record<string, string>> = {
  $in: 'It needs an array as its second operand whatever the row holds: a written one, or { "$cond": [{ "$isArray": "$field" }, "$field", []] }. Or:',
  $switch: 'It needs a default. Or:',
  $getField: 'It needs a written field name. Or:',
};

function notInFilters(operator: string, fit: FitOperands = 'anything'): Refused {
  const name = cutText(operator, 64);
  const known = fit !== 'anything' || Object.hasOwn(REFUSED_IN_FILTERS, operator);
  const what = known
    ? `'${name}' ${REFUSED_IN_FILTERS[operator] === undefined ? 'can fail' : REASONS[REFUSED_IN_FILTERS[operator]]}, so it cannot stand in a filter as written.`
    : `'${name}' is no operator that may stand in the $expr of a filter (${Object.keys(FILTER_OPERATORS).join(' ')}).`;
  return refuse.invalidQuery(`${what} ${INSTEAD[fit](name)}`);
}

const REASONS = {
  fails: 'can fail on a row',
  repeats: 'can repeat a value without end',
  unproven: 'may fail on a row',
} as const;
