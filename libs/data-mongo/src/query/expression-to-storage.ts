import type { Document } from 'mongodb';
import { untranslatable } from '../errors.js';
import { isPlainObject, setOwn } from '../storage/own-property.js';
import { columnToStorage, isTyped } from '../storage/to-storage.js';
import { UnstorableValue } from '../storage/unstorable-value.js';
import { typeOfExpression } from './expression-type.js';
import type { RowScope } from './row-scope.js';

/** What a variable holds, when it holds whole rows. */
export type Variables = ReadonlyMap<string, RowScope | undefined>;

export const NO_VARIABLES: Variables = new Map();

/** Server-side JavaScript is refused here too, whatever was checked before. */
const CODE = new Set(['$function', '$accumulator', '$where']);

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
    if (isTyped(expression)) return literalOf(expression);
    const [operator] = Object.keys(expression);
    if (operator === undefined || !operator.startsWith('$')) return this.mapMembers(expression);
    if (CODE.has(operator)) throw untranslatable(`'${operator}' is not available`);
    const operand = expression[operator];
    const special = Object.hasOwn(SPECIAL_FORMS, operator) ? SPECIAL_FORMS[operator] : undefined;
    if (special) return { [operator]: special(operand, this) };
    return this.mapMembers(expression);
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
    const rows = this.rowsOf(text.slice(2, dot));
    return rows ? `${text.slice(0, dot)}.${rows.resolve(text.slice(dot + 1)).column}` : text;
  }

  /** What kind of rows an expression yields, when that is known. */
  typeOf(expression: unknown) {
    return typeOfExpression(expression, this.scope, (name) => this.rowsOf(name));
  }

  private rowsOf(variable: string): RowScope | undefined {
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

function literalOf(value: Parameters<typeof columnToStorage>[0]): unknown {
  try {
    return columnToStorage(value);
  } catch (error) {
    throw error instanceof UnstorableValue ? untranslatable(error.message) : error;
  }
}

type SpecialForm = (operand: unknown, mapper: ExpressionMapper) => unknown;

function objectOf(operand: unknown, operator: string): Record<string, unknown> {
  if (!isPlainObject(operand)) throw untranslatable(`${operator} needs an object`);
  return operand;
}

const overArray =
  (operator: string, body: string, variable: (operand: Document) => string): SpecialForm =>
  (operand, mapper) => {
    const form = objectOf(operand, operator);
    const element = mapper.typeOf(form['input']).rows;
    const mapped = mapper.map(form) as Document;
    mapped[body] = mapper.with({ [variable(form)]: element }).map(form[body]);
    return mapped;
  };

const nameOr =
  (fallback: string) =>
  ({ as }: Document): string =>
    typeof as === 'string' ? as : fallback;

function letForm(operand: unknown, mapper: ExpressionMapper): unknown {
  const { vars, in: body } = objectOf(operand, '$let');
  const bound = objectOf(vars ?? {}, '$let.vars');
  const types = Object.fromEntries(
    Object.entries(bound).map(([name, value]) => [name, mapper.typeOf(value).rows]),
  );
  return { vars: mapper.map(bound), in: mapper.with(types).map(body) };
}

/** `$getField` and its kin name a field as text; without `input` it is a field of the row itself. */
const fieldForm =
  (operator: string): SpecialForm =>
  (operand, mapper) => {
    if (typeof operand === 'string')
      return operand.startsWith('$') ? mapper.map(operand) : mapper.column(operand);
    const form = objectOf(operand, operator);
    const mapped = mapper.map(form) as Document;
    const rows = mapper.typeOf(form['input'] ?? '$$CURRENT').rows;
    const { field } = form;
    if (typeof field === 'string' && !field.startsWith('$') && rows)
      mapped['field'] = rows.resolve(field).column;
    return mapped;
  };

export function sortKeysToStorage(keys: unknown, columnOf: (path: string) => string): unknown {
  if (!isPlainObject(keys)) return keys;
  const mapped: Document = {};
  for (const [path, direction] of Object.entries(keys)) setOwn(mapped, columnOf(path), direction);
  return mapped;
}

const sortedForm =
  (operator: string): SpecialForm =>
  (operand, mapper) => {
    const form = objectOf(operand, operator);
    const mapped = mapper.map(form) as Document;
    const rows = operator === '$sortArray' ? mapper.typeOf(form['input']).rows : undefined;
    const columnOf = (path: string) =>
      operator === '$sortArray' && !rows ? path : mapper.column(path, rows);
    mapped['sortBy'] = sortKeysToStorage(form['sortBy'], columnOf);
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
  $sortArray: sortedForm('$sortArray'),
  $top: sortedForm('$top'),
  $topN: sortedForm('$topN'),
  $bottom: sortedForm('$bottom'),
  $bottomN: sortedForm('$bottomN'),
};
