import { applyDecorators } from '@nestjs/common';
import {
  Allow,
  IsBoolean,
  IsOptional,
  IsString,
  ValidateBy,
  type ValidationArguments,
  type ValidatorConstraintInterface,
} from 'class-validator';
import { readJson, refuse, setOwn } from '#core';
import { ArgumentSchema, Convert, type JsonSchema } from '#schema';
import { BOOLEAN, INTEGER, listOf, OBJECT, STRING } from '../json-schema.js';

const describeSchema = (schema: JsonSchema, description: string | undefined) =>
  ArgumentSchema(description === undefined ? schema : { ...schema, description });

type Message = (args: ValidationArguments) => string;

/** A rule with its own message. JSON Schema has no keyword for it. */
const rule = (
  name: string,
  validate: (value: unknown, args: ValidationArguments) => boolean,
  message: Message,
) =>
  ValidateBy({
    name,
    validator: {
      // class-validator always passes the arguments.
      validate: validate as ValidatorConstraintInterface['validate'],
      defaultMessage: message as ValidatorConstraintInterface['defaultMessage'],
    },
  });

const isAbsent = (value: unknown): boolean => value === undefined || value === null;
const isText = (value: unknown): value is string => typeof value === 'string';
const isInteger = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value);

const NO_TEXT = { message: '$property must be a string' };

/** A required text; an empty text counts as missing. */
export function RequiredText(description?: string) {
  return applyDecorators(
    rule(
      'requiredText',
      (value) => isText(value) && value !== '',
      ({ value, property }) =>
        isAbsent(value) || value === '' ? `${property} is required` : `${property} must be a string`,
    ),
    describeSchema(STRING, description),
  );
}

/** The `class_name` of a built-in tool. A list of tools adds the names of the classes that the caller may use. */
export function ClassName() {
  return RequiredText('A class.');
}

/** A required text. Later code decides whether it may be empty. */
export function GivenText(description?: string) {
  return applyDecorators(
    rule('givenText', isText, ({ value, property }) =>
      isAbsent(value) ? `${property} is required` : `${property} must be a string`,
    ),
    describeSchema(STRING, description),
  );
}

export function Text(description?: string) {
  return applyDecorators(IsOptional(), IsString(NO_TEXT), describeSchema(STRING, description));
}

export function TextList(description?: string) {
  return applyDecorators(
    IsOptional(),
    rule(
      'textList',
      (value) => Array.isArray(value) && value.every(isText),
      ({ property }) => `${property} must be a list of strings`,
    ),
    describeSchema(listOf(STRING), description),
  );
}

export function Flag(description?: string) {
  return applyDecorators(
    IsOptional(),
    IsBoolean({ message: '$property must be true or false' }),
    describeSchema(BOOLEAN, description),
  );
}

/** Only JSON `false` disables the canonical filter of a class: 0 and "false" are errors. */
export function DefaultFilterChoice() {
  return applyDecorators(
    IsOptional(),
    IsBoolean({ message: '$property must be true or false' }),
    describeSchema(BOOLEAN, 'false: no default filter.'),
  );
}

export interface IntegerBounds {
  readonly min: number;
  readonly max: number;
  /**
   * Above `max`: `clamp` lowers the value to it; `refuse` refuses any value out of bounds and names both bounds.
   * Default `clamp`.
   */
  readonly above?: 'clamp' | 'refuse';
}

const noInteger = (value: unknown): string =>
  isText(value) && /^-?\d{1,15}$/.test(value)
    ? `must be an integer: write ${Number(value)} without quotes`
    : 'must be an integer';

function integerError(value: unknown, { min, max, above = 'clamp' }: IntegerBounds): string | null {
  if (above === 'refuse')
    return isInteger(value) && value >= min && value <= max ? null : `must be between ${min} and ${max}`;
  if (!isInteger(value)) return noInteger(value);
  return value < min ? `must be at least ${min}` : null;
}

/** A whole number. Its default is the initial value of the property. */
export function WholeNumber(bounds: IntegerBounds, description?: string) {
  const { max, above = 'clamp' } = bounds;
  return applyDecorators(
    IsOptional(),
    Convert((value) => (above === 'clamp' && isInteger(value) ? Math.min(value, max) : value)),
    rule(
      'wholeNumber',
      (value) => integerError(value, bounds) === null,
      ({ value, property }) => `${property} ${integerError(value, bounds) ?? 'is not valid'}`,
    ),
    describeSchema(INTEGER, description),
  );
}

/** A number of results: zero or less means the default, more than `max` means `max`. */
export function ResultCount(max: number, description?: string) {
  return applyDecorators(
    IsOptional(),
    Convert((value) => (!isInteger(value) ? value : value <= 0 ? undefined : Math.min(value, max))),
    rule('resultCount', isInteger, ({ value, property }) => `${property} ${noInteger(value)}`),
    describeSchema(INTEGER, description),
  );
}

export interface ChoiceOptions {
  readonly description?: string;
  /** The choices that the other arguments leave. Default: all choices of the JSON Schema. */
  readonly among?: (args: object) => readonly string[];
  /** Texts that count as missing. Default: none. */
  readonly blank?: (text: string) => boolean;
}

const spellChoice = (choices: readonly string[], value: unknown): unknown =>
  isText(value) ? (choices.find((choice) => choice.toLowerCase() === value.toLowerCase()) ?? value) : value;

function choiceRule(choices: readonly string[], { among = () => choices }: ChoiceOptions, required = false) {
  return rule(
    'choice',
    (value, { object }) => isText(value) && among(object).includes(value),
    ({ value, property, object }) => {
      if (required && (isAbsent(value) || value === '')) return `${property} is required`;
      return isText(value)
        ? `${property} must be one of ${among(object).join(', ')}`
        : `${property} must be a string`;
    },
  );
}

/** One of the texts in `choices`, in any letter case; the handler gets the spelling of `choices`. */
export function Choice(choices: readonly string[], options: ChoiceOptions = {}) {
  const { blank = () => false, description } = options;
  return applyDecorators(
    IsOptional(),
    Convert((value) => (isText(value) && blank(value) ? undefined : spellChoice(choices, value))),
    choiceRule(choices, options),
    describeSchema({ type: 'string', enum: choices }, description),
  );
}

export function RequiredChoice(choices: readonly string[]) {
  return applyDecorators(
    Convert((value) => spellChoice(choices, value)),
    choiceRule(choices, {}, true),
    describeSchema({ type: 'string', enum: choices }, undefined),
  );
}

export function JsonObject(description?: string) {
  return applyDecorators(
    IsOptional(),
    rule(
      'jsonObject',
      (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
      ({ property }) => `${property} must be an object`,
    ),
    describeSchema(OBJECT, description),
  );
}

/** An optional value that the data layer checks, such as a constraint. */
export function CheckedByData(schema: JsonSchema) {
  return applyDecorators(IsOptional(), Allow(), ArgumentSchema(schema));
}

/** A value that the schema requires and the data layer checks. */
export function RequiredCheckedByData(schema: JsonSchema) {
  return applyDecorators(Allow(), ArgumentSchema(schema));
}

/** A required value of any type; the data layer checks it. */
export function Present(schema: JsonSchema) {
  return applyDecorators(
    rule(
      'present',
      (value) => !isAbsent(value),
      ({ property }) => `${property} is required`,
    ),
    ArgumentSchema(schema),
  );
}

/** A value that a function validates. @param errorOf null when there is no error */
export function CheckedBy(errorOf: (value: unknown) => string | null, schema: JsonSchema) {
  return applyDecorators(
    rule(
      'checkedBy',
      (value) => errorOf(value) === null,
      ({ value }) => errorOf(value) ?? 'is not valid',
    ),
    ArgumentSchema(schema),
  );
}

/*
 * What models and some clients send in the place of what a schema asks for, and mean by it: null for an argument that is not given,
 * and the JSON text of an object or a list for the object or the list.
 */

interface Form {
  readonly name: string;
  /** The schema permits null. */
  readonly nullable: boolean;
  /** The schema permits no text, but an object or a list. */
  readonly object: boolean;
  readonly list: boolean;
}

/**
 * Reads arguments into the forms that the properties of a schema ask for. Others are left as they came.
 * @returns throws Refused `invalid_argument` for JSON text that cannot be read exactly
 */
export function compileGivenForms(inputSchema: JsonSchema): (args: unknown) => unknown {
  const forms = Object.entries((inputSchema['properties'] ?? {}) as Record<string, unknown>).map(
    describeForm,
  );
  return (args) => {
    if (typeof args !== 'object' || args === null || Array.isArray(args)) return args;
    const given = args as Readonly<Record<string, unknown>>;
    const changed = forms.filter((form) => Object.hasOwn(given, form.name) && reads(given[form.name], form));
    if (changed.length === 0) return args;
    const read: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(given)) {
      const form = changed.find((one) => one.name === name);
      if (!form) setOwn(read, name, value);
      else if (value !== null) setOwn(read, name, readText(value, form));
    }
    return read;
  };
}

function describeForm([name, schema]: [string, unknown]): Form {
  const { type, enum: values, anyOf, oneOf, ...others } = (schema ?? {}) as Record<string, unknown>;
  const types = [type].flat();
  const isOpen =
    type === undefined && (anyOf ?? oneOf ?? values ?? others['const'] ?? others['$ref']) === undefined;
  const branches = [anyOf, oneOf].flat().filter((branch) => branch !== undefined);
  return {
    name,
    nullable:
      isOpen ||
      types.includes('null') ||
      others['$ref'] !== undefined ||
      others['const'] === null ||
      (Array.isArray(values) && values.includes(null)) ||
      branches.some((branch) => describeForm([name, branch]).nullable),
    object: types.includes('object') && !types.includes('string'),
    list: types.includes('array') && !types.includes('string'),
  };
}

function reads(value: unknown, form: Form): boolean {
  if (value === null) return !form.nullable;
  return (form.object || form.list) && typeof value === 'string' && readText(value, form) !== value;
}

/** The object or list that a text is the JSON of; any other value as it is. @throws Refused for what JSON cannot hold */
function readText(value: unknown, { name, object, list }: Form): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value;
  const reading = readJson(value);
  if (!reading.ok && reading.fault !== 'syntax')
    throw refuse.invalidArgument(`${name} as JSON text: ${reading.why}`);
  if (!reading.ok) return value;
  return Array.isArray(reading.value) ? (list ? reading.value : value) : object ? reading.value : value;
}
