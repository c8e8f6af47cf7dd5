import { type Document, firstKey, getField, isDocument, setField } from '../bson/document.js';
import { type FieldPath, parseFieldPath } from '../bson/path.js';
import { createParseError, mongoError, notImplemented, scriptRefused } from '../errors.js';
import { type QueryContext, readMetadata } from '../query/context.js';
import { accumulatorExpressions } from './accumulators.js';
import { checkBound } from './memory.js';
import { arithmeticOperators } from './operators/arithmetic.js';
import { arrayOperators } from './operators/array.js';
import { conditionalOperators } from './operators/conditional.js';
import { conversionOperators } from './operators/conversion.js';
import { dateOperators } from './operators/date.js';
import { objectOperators } from './operators/object.js';
import { stringOperators } from './operators/string.js';
import type { Builder, Evaluator, Expression, OperatorTable, Scope } from './evaluate.js';
import { hasVariable } from './evaluate.js';

const operators: OperatorTable = Object.assign(
  Object.create(null) as OperatorTable,
  accumulatorExpressions,
  arithmeticOperators,
  arrayOperators,
  conditionalOperators,
  conversionOperators,
  dateOperators,
  objectOperators,
  stringOperators,
);

const scripts = new Set(['$function', '$accumulator', '$where']);
const known = new Set(['$toHashedIndexKey', '$encStrContains', '$sampleRate', '$createObjectId']);

/**
 * Compiles an aggregation expression once. Errors: 168 for an unknown operator,
 * 17276 for an undefined variable, 15983 for an object with more than one operator.
 */
export function compileExpression(expression: unknown, ctx: QueryContext): Expression {
  const evaluator = expressionBuilder(ctx).compile(expression);
  return { evaluate: (doc, current = doc) => evaluator({ root: doc, current, variables: [] }) };
}

/** A builder for stages that compile several expressions of their own. */
export const expressionBuilder = (ctx: QueryContext): Builder =>
  new ExpressionBuilder({ ...ctx, tick: ctx.tickExpression ?? ctx.tick }, new Map(), { count: 0 });

class ExpressionBuilder implements Builder {
  constructor(
    readonly ctx: QueryContext,
    private readonly names: ReadonlyMap<string, number>,
    private readonly slots: { count: number },
  ) {}

  bind(names: readonly string[]): { builder: Builder; slots: readonly number[] } {
    const extended = new Map(this.names);
    const slots = names.map((name) => {
      checkVariableName(name);
      const slot = this.slots.count++;
      extended.set(name, slot);
      return slot;
    });
    return { builder: new ExpressionBuilder(this.ctx, extended, this.slots), slots };
  }

  compile(expression: unknown): Evaluator {
    if (typeof expression === 'string') {
      if (expression.startsWith('$$')) return this.variable(expression.slice(2));
      if (expression === '$') throw mongoError(16872, "'$' by itself is not a valid field path");
      if (expression.startsWith('$')) return this.field(parseFieldPath(expression.slice(1)));
      checkBound(expression);
      return () => expression;
    }
    if (Array.isArray(expression)) {
      const items = expression.map((item) => this.compile(item));
      return (scope) => checkBound(items.map((item) => item(scope) ?? null));
    }
    if (!isDocument(expression)) return () => expression;
    const first = firstKey(expression);
    return first?.startsWith('$') ? this.operator(first, expression) : this.object(expression);
  }

  /** Paths start from `CURRENT`, also where an operator gives it another value. */
  private field(path: FieldPath): Evaluator {
    const slot = this.names.get('CURRENT');
    return slot === undefined ? fieldEvaluator(path) : (scope) => readPath(scope.variables[slot], path, 0);
  }

  private operator(name: string, expression: Document): Evaluator {
    if (Object.keys(expression).length !== 1)
      throw mongoError(15983, `an expression has one operator: ${name} has company`);
    if (scripts.has(name)) throw scriptRefused(name);
    if (known.has(name)) throw notImplemented(`the expression ${name}`);
    if (name === '$meta') return this.meta(getField(expression, name));
    const compile = operators[name];
    if (!compile) throw mongoError(168, `Unrecognized expression '${name}'`);
    const evaluate = compile(getField(expression, name), this, name);
    return (scope) => checkBound(evaluate(scope));
  }

  private meta(argument: unknown): Evaluator {
    if (typeof argument !== 'string')
      throw mongoError(17307, 'Type of the argument to $meta must be a string');
    const read = readMetadata(argument, this.ctx);
    return ({ root }) => (isDocument(root) ? read(root) : undefined);
  }

  private object(expression: Document): Evaluator {
    const fields = Object.keys(expression).map((name): [string, Evaluator] => {
      if (name.startsWith('$'))
        throw mongoError(15983, `unexpected operator ${name} among the fields of an object`);
      if (name === '') throw mongoError(15998, 'FieldPath field names may not be empty strings.');
      if (name.includes('.')) throw mongoError(16412, 'A field name with a dot needs $getField or $setField');
      return [name, this.compile(getField(expression, name))];
    });
    return (scope) => {
      const result: Document = {};
      for (const [name, evaluate] of fields) {
        const value = evaluate(scope);
        if (value !== undefined) setField(result, name, value);
      }
      return checkBound(result);
    };
  }

  private variable(reference: string): Evaluator {
    const [name = '', ...rest] = reference.split('.');
    if (name === '') throw createParseError('empty variable names are not allowed');
    const path = rest.length > 0 ? parseFieldPath(rest.join('.')) : undefined;
    const base = this.variableBase(name);
    return path ? (scope) => readPath(base(scope), path, 0) : base;
  }

  private variableBase(name: string): Evaluator {
    const slot = this.names.get(name);
    if (slot !== undefined) return (scope) => scope.variables[slot];
    const { ctx } = this;
    if (name === 'ROOT') return (scope) => scope.root;
    if (name === 'CURRENT') return (scope) => scope.current;
    if (name === 'REMOVE') return () => undefined;
    if (name === 'NOW' || name === 'CLUSTER_TIME') {
      const time = ctx.timeless ? undefined : name === 'NOW' ? ctx.now : ctx.clusterTime;
      if (!time) throw mongoError(51144, `Builtin variable '$$${name}' is not available`);
      return () => time;
    }
    if (name === 'SEARCH_META') throw notImplemented(`the variable $$${name}`);
    const { variables } = ctx;
    if (!variables || !hasVariable(variables, name))
      throw mongoError(17276, `Use of undefined variable: ${name}`);
    return () => variables[name];
  }
}

/** Errors: 9. */
export function checkVariableName(name: unknown): void {
  if (name !== 'CURRENT' && !/^[a-z\u0080-\uffff][\w\u0080-\uffff]*$/.test(String(name)))
    throw createParseError(`'${String(name)}' starts with an invalid character for a user variable name`);
}

function fieldEvaluator(path: FieldPath): Evaluator {
  const [only] = path.parts;
  if (path.parts.length === 1 && only !== undefined)
    return (scope) =>
      isDocument(scope.current) ? getField(scope.current, only) : readPath(scope.current, path, 0);
  return (scope: Scope) => readPath(scope.current, path, 0);
}

/** A path of an expression: documents in arrays on the way are mapped, positions are no path parts here. */
export function readPath(value: unknown, path: FieldPath, depth: number): unknown {
  let current = value;
  for (let i = depth; i < path.parts.length; i++) {
    if (Array.isArray(current)) {
      const found: unknown[] = [];
      for (const item of current) {
        const inner = isDocument(item) ? readPath(item, path, i) : undefined;
        if (inner !== undefined) found.push(inner);
      }
      return found;
    }
    if (!isDocument(current)) return undefined;
    current = getField(current, path.parts[i] as string);
  }
  return current;
}
