import { BSON } from 'bson';
import { type Document, firstKey, getField, isDocument, setField } from '../../bson/document.js';
import { mongoError } from '../../errors.js';
import {
  readNamedArguments,
  refuseOthers,
  requireDocument,
  requireText,
  unaryOrNull,
  requireMembers,
} from '../arguments.js';
import { nullish, type OperatorCompiler, type OperatorTable } from '../evaluate.js';

function fieldName(value: unknown, name: string): string {
  const quote = isDocument(value) ? firstKey(value) : undefined;
  const literal = isDocument(value) && (quote === '$literal' || quote === '$const') ? value[quote] : value;
  return requireText(literal, `'field' of ${name}`, 5654601);
}

const getOperator: OperatorCompiler = (argument, builder, name) => {
  const spec: Document =
    isDocument(argument) && Object.hasOwn(argument, 'field') ? argument : { field: argument };
  refuseOthers(spec, ['field', 'input'], name, 3041701);
  const field = spec['field'];
  const input = builder.compile(Object.hasOwn(spec, 'input') ? spec['input'] : '$$CURRENT');
  const key =
    isDocument(field) || (typeof field === 'string' && field.startsWith('$'))
      ? builder.compile(field)
      : () => fieldName(field, name);
  return (scope) => {
    const wanted = key(scope);
    const fieldName = requireText(wanted, `'field' of ${name}`, 3041704);
    const source = input(scope);
    if (isDocument(source)) return getField(source, fieldName);
    return source === null ? null : undefined;
  };
};

const setOperator: OperatorCompiler = (argument, builder, name) => {
  const spec = name === '$unsetField' && isDocument(argument) ? { ...argument, value: '$$REMOVE' } : argument;
  if (!isDocument(spec)) throw mongoError(4161100, `${name} requires an object as an argument`);
  requireMembers(spec, ['field', 'input', 'value'], name, 4161102);
  const key = fieldName(spec['field'], name);
  const { field: _field, ...rest } = spec;
  const { input, value } = readNamedArguments(rest, builder, name, ['input', 'value']);
  return (scope) => {
    const source = input(scope);
    if (nullish(source)) return null;
    const copy = { ...requireDocument(source, name, 4161105) };
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
  $bsonSize: unaryOrNull((value, name) => BSON.calculateObjectSize(requireDocument(value, name, 31393))),
};
