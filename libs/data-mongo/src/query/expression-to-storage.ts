import { setOwn } from '#core';
import { type Document, ObjectId } from 'mongodb';
import { untranslatable } from '../errors.js';
import { isPlainObject, isTyped } from '#policy';
import type { ClassStorage } from '../storage/class-storage.js';
import { inQuery } from '../storage/parse-values.js';
import { COMPUTED_NUMBER } from '../storage/plain-scalars.js';
import { chooseBound } from '../storage/stored-forms.js';
import { columnWith, type Content, type RowScope, type ScopedRef } from './row-scope.js';

const UNKNOWN_CONTENT: Content = {};

/** What the database computes: a double, a decimal or a whole number, by its operands. */
const COMPUTED_CONTENT: Content = { field: COMPUTED_NUMBER };
const COMPUTES_NUMBERS = new Set([
  '$sum',
  '$avg',
  '$add',
  '$subtract',
  '$multiply',
  '$divide',
  '$abs',
  '$round',
  '$trunc',
]);

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

/** What an expression refers to, as far as it passes a reference along: enough to map the names below it. */
function typeOfExpression(
  expression: unknown,
  scope: RowScope,
  rowsOfVariable: (name: string) => RowScope | undefined,
): Content {
  const findType = (inner: unknown): Content => typeOfExpression(inner, scope, rowsOfVariable);
  if (typeof expression === 'string') return typeOfReference(expression, scope, rowsOfVariable);
  if (!isPlainObject(expression)) return UNKNOWN_CONTENT;
  const entries = Object.entries(expression);
  const [operator, operand] = entries[0] ?? [];
  if (operator !== undefined && !operator.startsWith('$')) {
    const members = entries.map(([name, member]) => [name, columnWith(name, findType(member))] as const);
    return { rows: scope.ofNames(new Map(members)) };
  }
  if (entries.length !== 1 || operator === undefined) return UNKNOWN_CONTENT;
  if (operator === '$mergeObjects') return typeOfMerged(operand, findType);
  if (operator === '$map') return typeOfMapped(operand, scope, rowsOfVariable);
  if (PASSES_THROUGH.has(operator)) return findType(Array.isArray(operand) ? operand[0] : operand);
  if (COLLECTS.has(operator)) return { ...findType(operand), list: true };
  const form: Record<string, unknown> = isPlainObject(operand) ? operand : {};
  if (PASSES_INPUT.has(operator)) return findType(form['input']);
  if (PASSES_OUTPUT.has(operator)) return findType(form['output']);
  if (COMPUTES_NUMBERS.has(operator) && scope.form.pointersAreIds) return COMPUTED_CONTENT;
  return UNKNOWN_CONTENT;
}

/** The rows of the first operand; field names in the following operands refer to these rows. */
function typeOfMerged(operand: unknown, findType: (inner: unknown) => Content): Content {
  const [first, ...others] = Array.isArray(operand) ? (operand as unknown[]) : [operand];
  const type = findType(first);
  const written = others.filter(isPlainObject).flatMap((other) => Object.entries(other));
  const named = written.filter(([name]) => !name.startsWith('$'));
  if (!type.rows || named.length === 0) return type;
  const rows = type.rows.fork();
  for (const [name, member] of named) rows.introduce(name, findType(member));
  return { ...type, rows };
}

/** The result of a list operator is tracked only when it consists of rows: its members are no column. */
function typeOfMapped(
  operand: unknown,
  scope: RowScope,
  rowsOfVariable: (name: string) => RowScope | undefined,
): Content {
  if (!isPlainObject(operand)) return UNKNOWN_CONTENT;
  const { input, as = 'this', in: body } = operand;
  const element = typeOfExpression(input, scope, rowsOfVariable).rows;
  const findBound = (name: string) => (name === as ? element : rowsOfVariable(name));
  const { rows } = typeOfExpression(body, scope, findBound);
  return rows ? { rows } : UNKNOWN_CONTENT;
}

function typeOfReference(
  text: string,
  scope: RowScope,
  rowsOfVariable: (name: string) => RowScope | undefined,
): Content {
  if (!text.startsWith('$')) return UNKNOWN_CONTENT;
  if (!text.startsWith('$$')) return typeOfRef(scope.resolve(text.slice(1)));
  const dot = text.indexOf('.');
  const rows = rowsOfVariable(dot < 0 ? text.slice(2) : text.slice(2, dot));
  if (!rows) return UNKNOWN_CONTENT;
  return dot < 0 ? { rows: rows.fork() } : typeOfRef(rows.resolve(text.slice(dot + 1)));
}

function typeOfRef({ field, rows, list }: Content): Content {
  return { field, rows, list };
}

/** The source of a variable that holds whole rows. */
export type Variables = ReadonlyMap<string, RowScope | undefined>;

export const NO_VARIABLES: Variables = new Map();

/** Server-side JavaScript is refused here as well, independently of earlier checks. */
const CODE = new Set(['$function', '$accumulator', '$where']);

/** The operators that compare two values, and the same with the values in the other order. */
const MIRRORED_COMPARISONS: Readonly<Record<string, string>> = {
  $eq: '$eq',
  $ne: '$ne',
  $lt: '$gt',
  $lte: '$gte',
  $gt: '$lt',
  $gte: '$lte',
};

const COMPARES = new Set(['$eq', '$ne', '$lt', '$lte', '$gt', '$gte', '$in', '$cmp']);

export class ExpressionMapper {
  constructor(
    private readonly scope: RowScope,
    private readonly variables: Variables = NO_VARIABLES,
  ) {}

  /** An aggregation expression in storage names. Output names, variables and `$literal` stay as written. */
  map(expression: unknown): unknown {
    if (typeof expression === 'string') return this.reference(expression);
    if (Array.isArray(expression)) return expression.map((member) => this.map(member));
    if (!isPlainObject(expression)) return expression;
    if (isTyped(expression)) return this.literal(expression);
    const [operator] = Object.keys(expression);
    if (operator === undefined || !operator.startsWith('$')) return this.mapMembers(expression);
    if (CODE.has(operator)) throw untranslatable(`'${operator}' is not available`);
    const operand = expression[operator];
    const special = Object.hasOwn(SPECIAL_FORMS, operator) ? SPECIAL_FORMS[operator] : undefined;
    if (special) return { [operator]: special(operand, this) };
    if (COMPARES.has(operator) && Array.isArray(operand) && operand.length === 2)
      return this.mapCompared(operator, operand[0], operand[1]);
    return this.mapMembers(expression);
  }

  private literal(value: unknown): unknown {
    return inQuery(() => this.scope.form.literalToStorage(value));
  }

  /** A constant takes the form of the column that it is compared with, and a number each that a column may hold it in. */
  private mapCompared(operator: string, left: unknown, right: unknown): Document {
    const mirrored = Object.hasOwn(MIRRORED_COMPARISONS, operator)
      ? (MIRRORED_COMPARISONS[operator] as string)
      : null;
    if (mirrored !== null && typeof left === 'number' && typeof right !== 'number')
      return this.mapCompared(mirrored, right, left);
    const either = operator === '$in' ? this.listEither(left, right) : [];
    if (either.length > 1) return { $or: either.map((form) => ({ $in: [form, this.map(right)] })) };
    const [one, other] = [this.toComparable(left, right), this.toComparable(right, left)];
    if (operator === '$in' && Array.isArray(right))
      return { $in: [one, (other as unknown[]).flatMap((entry) => this.listNumbers(entry, left))] };
    const numbers = mirrored === null || typeof right !== 'number' ? [] : this.listNumbers(right, left);
    if (numbers.length < 2) return { [operator]: [one, other] };
    if (operator === '$eq') return { $in: [one, numbers] };
    return operator === '$ne'
      ? { $not: [{ $in: [one, numbers] }] }
      : { [operator]: [one, chooseBound(numbers, operator)] };
  }

  /** A number in every form in which what it is compared with may be; any other constant in its own. */
  private listNumbers(constant: unknown, other: unknown): unknown[] {
    const { form } = this.scope;
    if (typeof constant !== 'number' || !form.pointersAreIds) return [constant];
    const ref = this.findRef(other) ?? { column: '', nested: true, undeclared: false, form };
    return ref.form.listForms(constant, ref, false);
  }

  /** The boundaries of groups of numbers: each group begins with a number in every form of it. */
  mapBoundaries(boundaries: unknown, groupBy: unknown): unknown {
    if (!Array.isArray(boundaries)) return this.map(boundaries);
    return boundaries.map((boundary: unknown) =>
      chooseBound(this.listNumbers(this.toComparable(boundary, groupBy, true), groupBy), '$gte'),
    );
  }

  private toComparable(value: unknown, other: unknown, isFixed = false): unknown {
    const ref = this.findRef(other);
    if (!ref || !isConstant(value)) return this.map(value);
    if (isFixed) return ref.form.convertCompared(value, ref);
    if (Array.isArray(value)) return value.map((entry) => this.toComparable(entry, other));
    const ids = ref.form.listIds(value, ref);
    if (ids.length === 0) return ref.form.convertCompared(value, ref);
    const type = { $type: this.map(other) };
    // oxlint-disable-next-line unicorn/no-thenable -- a branch of $switch
    const branches = ids.map((id) => ({ case: { $eq: [type, bsonTypeOf(id)] }, then: id }));
    return { $switch: { branches, default: value } };
  }

  /** A text, and the ids that it may be among the entries of a list. */
  private listEither(value: unknown, list: unknown): readonly unknown[] {
    const ref = Array.isArray(list) ? undefined : this.findRef(list);
    return ref ? [value, ...ref.form.listIds(value, ref)] : [];
  }

  private findRef(expression: unknown): ScopedRef | undefined {
    if (typeof expression !== 'string' || !expression.startsWith('$') || expression.length < 2)
      return undefined;
    if (!expression.startsWith('$$')) return this.scope.resolve(expression.slice(1));
    const dot = expression.indexOf('.');
    const rows = dot < 0 ? undefined : this.toRows(expression.slice(2, dot));
    return rows?.resolve(expression.slice(dot + 1));
  }

  private mapMembers(object: Readonly<Record<string, unknown>>): Document {
    const mapped: Document = {};
    for (const [key, value] of Object.entries(object)) setOwn(mapped, key, this.map(value));
    return mapped;
  }

  private reference(text: string): string {
    if (text.startsWith('$$')) return this.variableReference(text);
    return text.startsWith('$') && text.length > 1 ? `$${this.scope.resolve(text.slice(1)).column}` : text;
  }

  private variableReference(text: string): string {
    const dot = text.indexOf('.');
    if (dot < 0) return text;
    const rows = this.toRows(text.slice(2, dot));
    return rows ? `${text.slice(0, dot)}.${rows.resolve(text.slice(dot + 1)).column}` : text;
  }

  /** What kind of rows an expression yields, when that is known. */
  findType(expression: unknown) {
    return typeOfExpression(expression, this.scope, (name) => this.toRows(name));
  }

  private toRows(variable: string): RowScope | undefined {
    return variable === 'ROOT' || variable === 'CURRENT' ? this.scope : this.variables.get(variable);
  }

  with(variables: Readonly<Record<string, RowScope | undefined>>): ExpressionMapper {
    return new ExpressionMapper(this.scope, new Map([...this.variables, ...Object.entries(variables)]));
  }

  /** Sort keys and field names given as text are paths without their `$`. */
  column(path: string, rows: RowScope = this.scope): string {
    return rows.resolve(path).column;
  }
}

const bsonTypeOf = (id: unknown): string => (id instanceof ObjectId ? 'objectId' : 'binData');

/** A typed value or a text that is no reference, or a list of them. */
function isConstant(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && value.every((entry) => isConstant(entry));
  return typeof value === 'string' ? !value.startsWith('$') : isTyped(value);
}

type SpecialForm = (operand: unknown, mapper: ExpressionMapper) => unknown;

function readObject(operand: unknown, operator: string): Record<string, unknown> {
  if (!isPlainObject(operand)) throw untranslatable(`${operator} needs an object`);
  return operand;
}

const overArray =
  (operator: string, body: string, variable: (operand: Document) => string): SpecialForm =>
  (operand, mapper) => {
    const form = readObject(operand, operator);
    const element = mapper.findType(form['input']).rows;
    const mapped = mapper.map(form) as Document;
    mapped[body] = mapper.with({ [variable(form)]: element }).map(form[body]);
    return mapped;
  };

const nameOr =
  (fallback: string) =>
  ({ as }: Document): string =>
    typeof as === 'string' ? as : fallback;

function letForm(operand: unknown, mapper: ExpressionMapper): unknown {
  const { vars, in: body } = readObject(operand, '$let');
  const bound = readObject(vars ?? {}, '$let.vars');
  const types = Object.fromEntries(
    Object.entries(bound).map(([name, value]) => [name, mapper.findType(value).rows]),
  );
  return { vars: mapper.map(bound), in: mapper.with(types).map(body) };
}

/** `$getField` and related operators name a field as text; without `input` it is a field of the row itself. */
const fieldForm =
  (operator: string): SpecialForm =>
  (operand, mapper) => {
    if (typeof operand === 'string')
      return operand.startsWith('$') ? mapper.map(operand) : mapper.column(operand);
    const form = readObject(operand, operator);
    const mapped = mapper.map(form) as Document;
    const rows = mapper.findType(form['input'] ?? '$$CURRENT').rows;
    const { field } = form;
    if (typeof field === 'string' && !field.startsWith('$') && rows)
      mapped['field'] = rows.resolve(field).column;
    return mapped;
  };

export function sortKeysToStorage(keys: unknown, toColumn: (path: string) => string): unknown {
  if (!isPlainObject(keys)) return keys;
  const mapped: Document = {};
  for (const [path, direction] of Object.entries(keys)) setOwn(mapped, toColumn(path), direction);
  return mapped;
}

const createSortedForm =
  (operator: string): SpecialForm =>
  (operand, mapper) => {
    const form = readObject(operand, operator);
    const mapped = mapper.map(form) as Document;
    const rows = operator === '$sortArray' ? mapper.findType(form['input']).rows : undefined;
    const toColumn = (path: string) =>
      operator === '$sortArray' && !rows ? path : mapper.column(path, rows);
    mapped['sortBy'] = sortKeysToStorage(form['sortBy'], toColumn);
    return mapped;
  };

const SPECIAL_FORMS: Readonly<Record<string, SpecialForm>> = {
  $literal: (operand) => operand,
  $let: letForm,
  $map: overArray('$map', 'in', nameOr('this')),
  $filter: overArray('$filter', 'cond', nameOr('this')),
  $reduce: overArray('$reduce', 'in', () => 'this'),
  $getField: fieldForm('$getField'),
  $setField: fieldForm('$setField'),
  $unsetField: fieldForm('$unsetField'),
  $sortArray: createSortedForm('$sortArray'),
  $top: createSortedForm('$top'),
  $topN: createSortedForm('$topN'),
  $bottom: createSortedForm('$bottom'),
  $bottomN: createSortedForm('$bottomN'),
};

export interface MappedPipeline {
  readonly stages: readonly Document[];
  /** The names of the resulting documents. */
  readonly scope: RowScope;
}

/** What a stage needs besides its own text: other classes, and the pipelines inside it. */
export interface StageContext {
  readonly rewriteLookups: boolean;
  readonly variables: Variables;
  findStorage(className: string): ClassStorage;
  /** A pipeline over another class; its internal columns are removed at the source. */
  convertJoinedPipeline(
    stages: readonly Readonly<Record<string, unknown>>[],
    storage: ClassStorage,
    variables: Variables,
  ): MappedPipeline;
  /** A branch that reads the same rows. */
  branch(stages: readonly Readonly<Record<string, unknown>>[], scope: RowScope): MappedPipeline;
}
