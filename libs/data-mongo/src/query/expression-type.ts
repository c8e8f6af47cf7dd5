import { isPlainObject } from '../storage/own-property.js';
import { RowScope, type ScopedColumn } from './row-scope.js';

export type ExpressionType = Omit<ScopedColumn, 'column'>;

const UNKNOWN: ExpressionType = {};

/** Operators whose result is their operand or one of its elements. */
const PASSES_THROUGH = new Set([
  '$first',
  '$last',
  '$min',
  '$max',
  '$reverseArray',
  '$arrayElemAt',
  '$slice',
  '$ifNull',
]);

const COLLECTS = new Set(['$push', '$addToSet']);
const PASSES_INPUT = new Set(['$filter', '$sortArray', '$firstN', '$lastN', '$maxN', '$minN']);
const PASSES_OUTPUT = new Set(['$top', '$topN', '$bottom', '$bottomN']);

/** What an expression holds, as far as it is a reference passed along: enough to map names behind it. */
export function typeOfExpression(
  expression: unknown,
  scope: RowScope,
  rowsOfVariable: (name: string) => RowScope | undefined,
): ExpressionType {
  const typeOf = (inner: unknown): ExpressionType => typeOfExpression(inner, scope, rowsOfVariable);
  if (typeof expression === 'string') return typeOfReference(expression, scope, rowsOfVariable);
  if (!isPlainObject(expression)) return UNKNOWN;
  const entries = Object.entries(expression);
  const [operator, operand] = entries[0] ?? [];
  if (operator !== undefined && !operator.startsWith('$')) {
    const members = entries.map(([name, member]) => [name, { column: name, ...typeOf(member) }] as const);
    return { rows: RowScope.ofNames(members) };
  }
  if (entries.length !== 1 || operator === undefined) return UNKNOWN;
  if (operator === '$mergeObjects') return typeOfMerged(operand, typeOf);
  if (operator === '$map') return typeOfMapped(operand, scope, rowsOfVariable);
  if (PASSES_THROUGH.has(operator)) return typeOf(Array.isArray(operand) ? operand[0] : operand);
  if (COLLECTS.has(operator)) return { ...typeOf(operand), list: true };
  const form: Record<string, unknown> = isPlainObject(operand) ? operand : {};
  if (PASSES_INPUT.has(operator)) return typeOf(form['input']);
  if (PASSES_OUTPUT.has(operator)) return typeOf(form['output']);
  return UNKNOWN;
}

/** The first operand's rows, in which the names written out after it mean those values. */
function typeOfMerged(operand: unknown, typeOf: (inner: unknown) => ExpressionType): ExpressionType {
  const [first, ...others] = Array.isArray(operand) ? (operand as unknown[]) : [operand];
  const type = typeOf(first);
  const written = others.filter(isPlainObject).flatMap((other) => Object.entries(other));
  const named = written.filter(([name]) => !name.startsWith('$'));
  if (!type.rows || named.length === 0) return type;
  const rows = type.rows.fork();
  for (const [name, member] of named) rows.introduce(name, typeOf(member));
  return { ...type, rows };
}

/** Of what a list is made into only rows are known: its members are no column. */
function typeOfMapped(
  operand: unknown,
  scope: RowScope,
  rowsOfVariable: (name: string) => RowScope | undefined,
): ExpressionType {
  if (!isPlainObject(operand)) return UNKNOWN;
  const { input, as = 'this', in: body } = operand;
  const element = typeOfExpression(input, scope, rowsOfVariable).rows;
  const bound = (name: string) => (name === as ? element : rowsOfVariable(name));
  const { rows } = typeOfExpression(body, scope, bound);
  return rows ? { rows } : UNKNOWN;
}

function typeOfReference(
  text: string,
  scope: RowScope,
  rowsOfVariable: (name: string) => RowScope | undefined,
): ExpressionType {
  if (!text.startsWith('$')) return UNKNOWN;
  if (!text.startsWith('$$')) return typeOfRef(scope.resolve(text.slice(1)));
  const dot = text.indexOf('.');
  const rows = rowsOfVariable(dot < 0 ? text.slice(2) : text.slice(2, dot));
  if (!rows) return UNKNOWN;
  return dot < 0 ? { rows: rows.fork() } : typeOfRef(rows.resolve(text.slice(dot + 1)));
}

function typeOfRef({ field, rows, list }: ExpressionType): ExpressionType {
  return { ...(field && { field }), ...(rows && { rows }), ...(list && { list }) };
}
