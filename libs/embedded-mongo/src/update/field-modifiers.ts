import { Timestamp } from 'bson';
import { addNumbers, multiplyNumbers } from '../bson/arithmetic.js';
import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { compareNumbers, integerValue, numberKind, toBigInt } from '../bson/number.js';
import { printValue } from '../bson/text.js';
import { typeName } from '../bson/type-name.js';
import { badValue, createParseError, mongoError, typeMismatch } from '../errors.js';
import type { Predicate, QueryContext } from '../query/context.js';

/** A modifier leaves the value alone, or removes the field. */
export const unchanged = Symbol('unchanged');
export const absent = Symbol('absent');

/** What a modifier knows of the place it changes. */
interface Target {
  /** The concrete path, for error texts. */
  readonly path: string;
  readonly doc: Document;
}

/** Computes the new value of one field; `current` is undefined when the field is missing. */
export type Modifier = (current: unknown, target: Target) => unknown;

export interface ModifierContext {
  readonly ctx: QueryContext;
  readonly compileFilter: (filter: Document) => Predicate;
}

/** Reads the argument of one modifier for one field, at compile time. */
export type ModifierCompiler = (argument: unknown, field: string, context: ModifierContext) => Modifier;

/** `{_id: 1}` as error texts name the document. */
const documentId = (doc: Document): string => `{_id: ${printValue(getField(doc, '_id'))}}`;

const arithmetic =
  (
    name: string,
    verb: string,
    apply: (a: unknown, b: unknown) => unknown,
    listMissing: (b: unknown) => unknown,
  ): ModifierCompiler =>
  (argument, field) => {
    if (numberKind(argument) === undefined)
      throw typeMismatch(`Cannot ${verb} with non-numeric argument: {${field}: ${printValue(argument)}}`);
    return (current, target) => {
      if (current === undefined) return listMissing(argument);
      if (numberKind(current) === undefined)
        throw typeMismatch(
          `Cannot apply ${name} to a value of non-numeric type. ${documentId(target.doc)} has the field ` +
            `'${target.path.split('.').at(-1)}' of non-numeric type ${typeName(current)}`,
        );
      const result = apply(current, argument);
      // An equal value of the same type is no change, also where a zero would get another sign.
      if (numberKind(result) === numberKind(current) && compareNumbers(result, current) === 0)
        return unchanged;
      const integers = [current, argument].every((value) =>
        ['int', 'long'].includes(numberKind(value) as string),
      );
      if (integers && numberKind(result) === 'double')
        throw badValue(`Failed to apply ${name} to ${printValue(current)} of ${documentId(target.doc)}`);
      return result;
    };
  };

const zeroLike = (argument: unknown): unknown => multiplyNumbers(argument, 0);

const extreme =
  (direction: 1 | -1): ModifierCompiler =>
  (argument, _field, { ctx }) =>
  (current) =>
    current === undefined || compareValues(argument, current, ctx.collation) * direction < 0
      ? argument
      : unchanged;

const currentDate: ModifierCompiler = (argument, field, { ctx }) => {
  const unknown = isDocument(argument) ? Object.keys(argument).find((key) => key !== '$type') : undefined;
  if (unknown !== undefined) throw badValue(`Unrecognized $currentDate option: ${unknown}`);
  const type = isDocument(argument) ? getField(argument, '$type') : undefined;
  if (typeof argument === 'boolean' || type === 'date') return () => new Date(ctx.now);
  if (type === 'timestamp') return () => new Timestamp({ t: Math.floor(Number(ctx.now) / 1000), i: 1 });
  throw badValue(`$currentDate takes a boolean or {$type: 'date' | 'timestamp'} for ${field}`);
};

const bit: ModifierCompiler = (argument, field) => {
  if (!isDocument(argument))
    throw badValue(`$bit takes {and | or | xor: number}, not a ${typeName(argument)}`);
  const names = Object.keys(argument);
  if (names.length === 0) throw badValue('$bit takes at least one operation: {and | or | xor: number}');
  for (const name of names) {
    if (!['and', 'or', 'xor'].includes(name))
      throw badValue(`$bit knows 'and', 'or' and 'xor', not '${name}'`);
    if (!isInteger(argument[name]))
      throw badValue(`$bit takes whole numbers for ${field}, not a ${typeName(argument[name])}`);
  }
  return (current, target) => {
    if (current !== undefined && !isInteger(current))
      throw badValue(`Cannot apply $bit to '${target.path}' of type ${typeName(current)}`);
    let value = toBigInt(current ?? 0);
    let long = numberKind(current) === 'long';
    for (const name of names) {
      const operand = toBigInt(argument[name]);
      long ||= numberKind(argument[name]) === 'long';
      value = name === 'and' ? value & operand : name === 'or' ? value | operand : value ^ operand;
    }
    return integerValue(value, long ? 'long' : 'int');
  };
};

const isInteger = (value: unknown): boolean => ['int', 'long'].includes(numberKind(value) as string);

const assign: ModifierCompiler = (argument) => () => argument;
const remove: Modifier = (current) => (current === undefined ? unchanged : absent);

/** Modifiers that look at one value and give another. */
export const fieldModifiers: Readonly<Record<string, ModifierCompiler>> = {
  $set: assign,
  $setOnInsert: assign,
  $unset: () => remove,
  $inc: arithmetic('$inc', 'increment', addNumbers, (argument) => argument),
  $mul: arithmetic('$mul', 'multiply', multiplyNumbers, zeroLike),
  $min: extreme(1),
  $max: extreme(-1),
  $currentDate: currentDate,
  $bit: bit,
};

/** `$rename` needs two paths, so the update takes it apart itself. Errors: 2 for a bad target. */
export function renameTarget(field: string, argument: unknown): string {
  if (typeof argument !== 'string')
    throw badValue(`The 'to' field for $rename must be a string: ${field}: ${printValue(argument)}`);
  if (argument.includes('\0'))
    throw badValue("The 'to' field for $rename cannot contain an embedded null byte");
  if (argument === field)
    throw badValue(`The source and target field for $rename must differ: ${field}: ${printValue(argument)}`);
  if (`${field}.${argument}`.split('.').some((part) => /^\$(\[.*\])?$/.test(part)))
    throw badValue(`The source and target field for $rename may not be dynamic: ${field}`);
  if (argument.startsWith(`${field}.`) || field.startsWith(`${argument}.`))
    throw badValue(`source and target of $rename are on one path: ${field}: ${argument}`);
  if (argument === '') throw createParseError('An empty update path is not valid.');
  if (argument.startsWith('$'))
    throw mongoError(52, `The dollar ($) prefixed field '${argument}' is not valid for storage.`);
  return argument;
}
