import { BSON } from 'bson';
import { mongoError } from '../../errors.js';
import { getField, isDocument, setField, type Document } from '../../bson/document.js';
import { typeName } from '../../bson/type-name.js';
import { readNamedArguments, unary } from '../arguments.js';
import { nullish, type Evaluator, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

function fieldName(value: unknown, name: string): string {
  const literal = isDocument(value) && Object.hasOwn(value, '$literal') ? value['$literal'] : value;
  if (typeof literal !== 'string') {
    throw mongoError(
      5654601,
      `${name} requires 'field' to evaluate to a constant String, but got ${typeName(literal)}`,
    );
  }
  return literal;
}

const getOperator: OperatorCompiler = (argument, builder, name) => {
  const spec: Document =
    isDocument(argument) && Object.hasOwn(argument, 'field') ? argument : { field: argument };
  for (const key of Object.keys(spec)) {
    if (key !== 'field' && key !== 'input')
      throw mongoError(3041701, `${name} found an unknown argument: ${key}`);
  }
  const field = spec['field'];
  if (typeof field === 'string' && field.startsWith('$')) {
    throw mongoError(
      5654600,
      `${name} requires 'field' to evaluate to a constant; use $literal for a name with a dollar`,
    );
  }
  const input = builder.compile(Object.hasOwn(spec, 'input') ? spec['input'] : '$$CURRENT');
  const key =
    isDocument(field) && !Object.hasOwn(field, '$literal')
      ? builder.compile(field)
      : () => fieldName(field, name);
  return (scope) => {
    const wanted = key(scope);
    if (typeof wanted !== 'string')
      throw mongoError(
        3041704,
        `${name} requires 'field' to evaluate to type String, but got ${typeName(wanted)}`,
      );
    const source = input(scope);
    if (isDocument(source)) return getField(source, wanted);
    return source === null ? null : undefined;
  };
};

const setOperator: OperatorCompiler = (argument, builder, name) => {
  const spec = name === '$unsetField' && isDocument(argument) ? { ...argument, value: '$$REMOVE' } : argument;
  if (!isDocument(spec)) throw mongoError(4161100, `${name} requires an object as an argument`);
  for (const required of ['field', 'input', 'value']) {
    if (!Object.hasOwn(spec, required))
      throw mongoError(4161102, `${name} requires '${required}' to be specified`);
  }
  const key = fieldName(spec['field'], name);
  const { field: _field, ...rest } = spec;
  const { input, value } = readNamedArguments(rest, builder, name, ['input', 'value']) as Record<
    'input' | 'value',
    Evaluator
  >;
  return (scope) => {
    const source = input(scope);
    if (nullish(source)) return null;
    if (!isDocument(source)) throw mongoError(4161105, `${name} requires 'input' to evaluate to type Object`);
    const copy = { ...source };
    const next = value(scope);
    if (next === undefined) delete copy[key];
    else setField(copy, key, next);
    return copy;
  };
};

/** Operators on whole documents and their fields. */
export const objectOperators: OperatorTable = {
  $getField: getOperator,
  $setField: setOperator,
  $unsetField: setOperator,
  $bsonSize: unary((value, name) => {
    if (nullish(value)) return null;
    if (!isDocument(value))
      throw mongoError(31393, `${name} requires a document input, found: ${typeName(value)}`);
    return BSON.calculateObjectSize(value);
  }),
};
