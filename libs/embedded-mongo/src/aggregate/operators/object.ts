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
  const text = requireText(literal, `'field' of ${name}`, 5654601);
  if (literal === value && text.startsWith('$'))
    throw mongoError(4161108, `${name} takes a path as 'field' only as a $literal`);
  if (text.includes('\0')) throw mongoError(9534700, `'field' of ${name} contains a null byte`);
  return text;
}

const getOperator: OperatorCompiler = (argument, builder, name) => {
  const spec: Document =
    isDocument(argument) && Object.hasOwn(argument, 'field')
      ? argument
      : { field: argument, input: '$$CURRENT' };
  refuseOthers(spec, ['field', 'input'], name, 3041701);
  requireMembers(spec, ['input'], name, 3041703);
  const { field } = spec;
  const input = builder.compile(spec['input']);
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
  const given = requireDocument(argument, name, 4161100);
  if (name === '$unsetField') refuseOthers(given, ['field', 'input'], name, 4161101);
  const spec = name === '$unsetField' ? { ...given, value: '$$REMOVE' } : given;
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
