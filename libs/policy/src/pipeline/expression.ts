import { cutText, Refused, setOwn, refuse } from '#core';
import { suggestNames } from '../model/field-names.js';
import { isPlainObject, isTyped, type PlainObject, reduceTyped } from '../model/where.js';
import { asDate, convertOperand } from './compared-operands.js';
import { constantText } from './deny-rules.js';
import { readMembers, findReducedTypes, typeOfExpression, withElement } from './expression-types.js';
import type { Binding, Frame } from './frame.js';
import { isExpressionOperator, listExpressionOperators } from './operators.js';
import { pipelineBlocked, invalidPipeline } from './stages.js';
import { notePlace } from './unlikely-operands.js';

/**
 * The expression with every reference checked against the frame and in wire names, and with what the caller wrote in the form in
 * which it is compared.
 * @throws Refused `access_denied` (field_denied), `invalid_argument` for an unbound variable, `invalid_query` for an unknown
 * operator or a value that can never match
 */
export function resolveExpression(expression: unknown, frame: Frame): unknown {
  if (typeof expression === 'string') return resolveText(expression, frame);
  if (Array.isArray(expression)) return expression.map((element) => resolveExpression(element, frame));
  if (!isPlainObject(expression)) return expression;
  if (isTyped(expression) && expression.__type === 'Date') return reduceTyped(expression);
  const reference = '$getField' in expression ? asReference(expression['$getField']) : null;
  if (reference !== null) return resolveText(reference, frame);
  return mapMembers(expression, (key, value) => {
    if (!key.startsWith('$')) return resolveExpression(value, frame);
    if (!isExpressionOperator(key)) throw refuseUnknownOperator(key);
    const operator = Object.hasOwn(SCOPED_EXPRESSIONS, key) ? SCOPED_EXPRESSIONS[key] : undefined;
    return operator ? operator(value, frame) : resolveExpression(convertOperand(key, value, frame), frame);
  });
}

function refuseUnknownOperator(key: string): Refused {
  const near = suggestNames(key, listExpressionOperators()).map((name) => `'${name}'`);
  const meant = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : '';
  return refuse.invalidQuery(`'${cutText(key, 64)}' is no operator that can be used${meant}`);
}

export function mapMembers(
  object: PlainObject,
  map: (key: string, value: unknown) => unknown,
): Record<string, unknown> {
  const mapped: Record<string, unknown> = {};
  for (const key of Object.keys(object)) setOwn(mapped, key, map(key, object[key]));
  return mapped;
}

/** Whether an expression uses a whole document, and so columns that it does not name. */
export function readsWholeDocument(expression: unknown): boolean {
  if (typeof expression === 'string') return expression === '$$ROOT' || expression === '$$CURRENT';
  if (Array.isArray(expression)) return expression.some(readsWholeDocument);
  return isPlainObject(expression) && Object.values(expression).some(readsWholeDocument);
}

/** `$getField` of the document or a variable is rewritten as a reference, so that later code handles one form only. */
function asReference(argument: unknown): string | null {
  const { field, input = '$$CURRENT' } = getFieldMembers(argument);
  const plain = !field.includes('.') && typeof input === 'string' && /^\$\$[A-Za-z]\w*$/.test(input);
  return plain ? `${input}.${field}` : null;
}

function getFieldMembers(argument: unknown): { readonly field: string; readonly input?: unknown } {
  const long = isPlainObject(argument) && 'field' in argument;
  const field = constantText(long ? argument['field'] : argument);
  if (field === null) throw pipelineBlocked('denied_field_ref_in_expr', '$getField');
  return long && argument['input'] !== undefined ? { field, input: argument['input'] } : { field };
}

function resolveText(text: string, frame: Frame): string {
  if (text.startsWith('$$')) return resolveVariable(text, frame);
  if (!text.startsWith('$')) return text;
  notePlace(text.slice(1), frame);
  return `$${frame.resolve(text.slice(1), 'pipeline reference')}`;
}

function resolveVariable(text: string, frame: Frame): string {
  const dot = text.indexOf('.');
  const name = text.slice(2, dot < 0 ? undefined : dot);
  const owner = findDocument(name, frame);
  if (dot < 0 || owner === null) return text;
  return `$$${name}.${owner.resolve(text.slice(dot + 1), 'pipeline reference')}`;
}

function findDocument(variable: string, frame: Frame): Frame | null {
  if (variable === 'ROOT' || variable === 'CURRENT') return frame;
  return /^[A-Z]/.test(variable) ? null : frame.variable(variable);
}

/** The frame of a document that the expression may return whole; null when it returns checked values only. */
function documentIn(expression: unknown, frame: Frame): Frame | null {
  if (typeof expression === 'string') {
    const [, variable] = /^\$\$(\w+)$/.exec(expression) ?? [];
    // Variables bound inside have inputs of their own, which are checked as well.
    return variable !== undefined && frame.binds(variable) ? findDocument(variable, frame) : null;
  }
  const parts = Array.isArray(expression)
    ? expression
    : isPlainObject(expression)
      ? Object.values(expression)
      : [];
  for (const part of parts) {
    const found = documentIn(part, frame);
    if (found) return found;
  }
  return null;
}

/** Variables and what they may hold, in the frame in which their values are computed. */
export function readBindings(variables: PlainObject, frame: Frame): Binding[] {
  return Object.entries(variables).map(([name, value]) => [
    name,
    documentIn(value, frame),
    typeOfExpression(value, frame),
  ]);
}

type Resolve = (argument: unknown, frame: Frame) => unknown;

/** Operators that bind variables, name fields without `$`, or quote. All others are resolved member by member. */
const SCOPED_EXPRESSIONS: Readonly<Record<string, Resolve>> = {
  $literal: (value, frame) => {
    resolveExpression(value, frame);
    return value;
  },
  $let: (argument, frame) => {
    const { vars, in: body } = members(argument);
    const bindings = members(vars);
    const inner = frame.bind(readBindings(bindings, frame));
    return { vars: resolveExpression(bindings, frame), in: resolveExpression(body, inner) };
  },
  $map: overElements('in'),
  $filter: overElements('cond'),
  $reduce: (argument, frame) => {
    const { input, initialValue, in: body } = members(argument);
    const element = documentIn(input, frame);
    const value = documentIn(initialValue, frame) ?? documentIn(body, frame) ?? element;
    const types = findReducedTypes(readMembers(argument), frame);
    const inner = frame.bind([
      ['this', element, types.element],
      ['value', value, types.value],
    ]);
    return {
      input: resolveExpression(input, frame),
      initialValue: resolveExpression(
        types.value?.type === 'Date' ? asDate(initialValue, frame) : initialValue,
        frame,
      ),
      in: resolveExpression(body, inner),
    };
  },
  $getField: (argument, frame) => {
    const { field, input = '$$CURRENT' } = getFieldMembers(argument);
    const owner = documentIn(input, frame);
    // A name with a dot is one column here, which no allowlist contains.
    return {
      field: owner ? owner.resolve(field, 'pipeline reference') : field,
      input: resolveExpression(input, frame),
    };
  },
  $top: resolveSortBy(() => true),
  $topN: resolveSortBy(() => true),
  $bottom: resolveSortBy(() => true),
  $bottomN: resolveSortBy(() => true),
  $sortArray: resolveSortBy((input, frame) => documentIn(input, frame) !== null),
};

function overElements(body: 'in' | 'cond'): Resolve {
  return (argument, frame) => {
    const { input, as = 'this', [body]: inner, ...rest } = members(argument);
    if (typeof as !== 'string')
      throw invalidPipeline(`"${body}" of an expression`, 'the name in "as" is a text');
    const scope = withElement({ input, as }, frame, documentIn(input, frame));
    return {
      ...(resolveExpression(rest, frame) as PlainObject),
      input: resolveExpression(input, frame),
      as,
      [body]: resolveExpression(inner, scope),
    };
  };
}

/** The keys of `sortBy` are fields of the current documents, or of the elements of `input`. */
function resolveSortBy(ofDocuments: (input: unknown, frame: Frame) => boolean): Resolve {
  return (argument, frame) => {
    const { sortBy, ...rest } = members(argument);
    const order =
      isPlainObject(sortBy) && ofDocuments(rest['input'], frame)
        ? Object.fromEntries(
            Object.entries(sortBy).map(([path, direction]) => [
              frame.resolve(path, 'sortBy field'),
              direction,
            ]),
          )
        : sortBy;
    return {
      ...(resolveExpression(rest, frame) as PlainObject),
      ...(sortBy !== undefined && { sortBy: order }),
    };
  };
}

function members(argument: unknown): Record<string, unknown> {
  if (!isPlainObject(argument))
    throw invalidPipeline('expression', 'this operator takes an object of named members');
  return { ...argument };
}
