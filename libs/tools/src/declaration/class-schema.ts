import 'reflect-metadata';
import { isDeepStrictEqual } from 'node:util';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validate, type ValidationError } from 'class-validator';
import { declaredSchema } from '../arguments/argument.decorators.js';
import type { SchemaReader } from '../json-schema.js';
import type { JsonSchema } from '../tool.js';

/** A class whose properties carry class-validator decorators. */
export type ValidatedClass = new () => object;

/** Reads values by a class, and exposes the class itself for compiling its checks. */
export interface ClassReader extends SchemaReader {
  readonly type: ValidatedClass;
  /** The JSON Schema with the default values of properties. A property that has one is not required. */
  jsonSchemaWithDefaults(): JsonSchema;
}

export function isClass(schema: unknown): schema is ValidatedClass {
  return typeof schema === 'function';
}

export function isClassReader(reader: SchemaReader): reader is ClassReader {
  return 'type' in reader;
}

/** @throws TypeError when the class has no decorated property */
export function readValidatedClass(type: ValidatedClass): ClassReader {
  return {
    type,
    jsonSchema: jsonSchemaOfClass(type),
    jsonSchemaWithDefaults: () => jsonSchemaOfClass(type, { defaults: true }),
    compile: () => async (given) => {
      const value = plainToInstance(type, given);
      if (typeof value !== 'object' || value === null) return { ok: false, issues: ['must be an object'] };
      const errors = await validate(value, {
        whitelist: true,
        forbidNonWhitelisted: true,
        forbidUnknownValues: true,
        validationError: { target: false, value: false },
      });
      return errors.length === 0 ? { ok: true, value } : { ok: false, issues: errors.flatMap(messagesOf) };
    },
  };
}

function messagesOf({ constraints = {}, children = [] }: ValidationError): string[] {
  return [...Object.values(constraints), ...children.flatMap(messagesOf)];
}

/** One decorator on one property. */
interface Rule {
  readonly propertyName: string;
  readonly type: string;
  readonly name?: string;
  readonly constraints?: readonly unknown[];
  readonly each?: boolean;
}

type Part = Record<string, unknown>;

const numeric =
  (name: string) =>
  (value: unknown): Part => ({ [name]: value });

/** The JSON Schema keywords of the usual decorators. Other decorators are still checked. */
const KEYWORDS: Readonly<Record<string, (...constraints: unknown[]) => Part>> = {
  isString: () => ({ type: 'string' }),
  isBoolean: () => ({ type: 'boolean' }),
  isNumber: () => ({ type: 'number' }),
  isInt: () => ({ type: 'integer' }),
  isObject: () => ({ type: 'object' }),
  isArray: () => ({ type: 'array' }),
  isPositive: () => ({ exclusiveMinimum: 0 }),
  isNegative: () => ({ exclusiveMaximum: 0 }),
  min: numeric('minimum'),
  max: numeric('maximum'),
  isDivisibleBy: numeric('multipleOf'),
  minLength: numeric('minLength'),
  maxLength: numeric('maxLength'),
  isLength: (minLength, maxLength) => ({ minLength, ...(maxLength !== undefined && { maxLength }) }),
  isNotEmpty: () => ({}),
  matches: (pattern) =>
    pattern instanceof RegExp && pattern.flags === '' ? { pattern: pattern.source } : {},
  isIn: (values) => ({ enum: values }),
  isEnum: (_object, values) => ({ enum: values }),
  equals: (value) => ({ const: value }),
  arrayMinSize: numeric('minItems'),
  arrayMaxSize: numeric('maxItems'),
  arrayUnique: () => ({ uniqueItems: true }),
  isEmail: () => ({ type: 'string', format: 'email' }),
  isUrl: () => ({ type: 'string', format: 'uri' }),
  isUuid: () => ({ type: 'string', format: 'uuid' }),
  isDateString: () => ({ type: 'string', format: 'date-time' }),
  isIso8601: () => ({ type: 'string', format: 'date-time' }),
};

const BY_DESIGN = new Map<unknown, string>([
  [String, 'string'],
  [Number, 'number'],
  [Boolean, 'boolean'],
  [Array, 'array'],
]);

interface Reading {
  /** The classes around this one. */
  readonly outer?: readonly unknown[];
  /** Whether the schema says what properties are without an argument. */
  readonly defaults?: boolean;
}

/** @throws TypeError for a class without decorated properties, and for a recursive one */
function jsonSchemaOfClass(type: ValidatedClass, { outer = [], defaults = false }: Reading = {}): JsonSchema {
  if (outer.includes(type)) throw new TypeError(`has no JSON Schema: ${type.name} contains itself`);
  const rules: readonly Rule[] = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  const byProperty = grouped(rules);
  if (byProperty.size === 0)
    throw new TypeError(`is the class ${type.name} without class-validator decorators`);
  const properties: Part = {};
  const required: string[] = [];
  const values = defaults ? initialValues(type) : {};
  for (const [name, own] of byProperty) {
    const declared = declaredSchema(type, name);
    if (declared === null) continue;
    const reading = { outer: [...outer, type], defaults };
    properties[name] = {
      ...propertySchema(type, name, own, reading),
      ...defaultOf(values[name]),
      ...declared,
    };
    const mayBeMissing = own.some((rule) => rule.type === 'conditionalValidation');
    if (!mayBeMissing && values[name] === undefined) required.push(name);
  }
  return { type: 'object', properties, required, additionalProperties: false };
}

/** What the properties of a new instance hold. Empty for a class whose constructor needs arguments. */
function initialValues(type: ValidatedClass): Readonly<Record<string, unknown>> {
  try {
    return { ...new type() };
  } catch {
    return {};
  }
}

/** The keyword for a value that JSON can hold; another one, such as the current date, is not shown. */
function defaultOf(value: unknown): Part {
  try {
    const shown: unknown = JSON.parse(JSON.stringify(value));
    return isDeepStrictEqual(shown, value) ? { default: shown } : {};
  } catch {
    return {};
  }
}

function grouped(rules: readonly Rule[]): Map<string, Rule[]> {
  const groups = new Map<string, Rule[]>();
  for (const rule of rules) groups.set(rule.propertyName, [...(groups.get(rule.propertyName) ?? []), rule]);
  return groups;
}

function propertySchema(
  type: ValidatedClass,
  property: string,
  rules: readonly Rule[],
  reading: Reading,
): JsonSchema {
  const design: unknown = Reflect.getMetadata('design:type', type.prototype as object, property);
  const own: Part = {};
  const items: Part = {};
  for (const rule of rules) {
    const keywords = rule.type === 'nestedValidation' ? nested(type, property, reading) : keywordsOf(rule);
    Object.assign(
      rule.each === true || (rule.type === 'nestedValidation' && design === Array) ? items : own,
      keywords,
    );
  }
  const isList = design === Array || own['type'] === 'array' || Object.keys(items).length > 0;
  if (isList) return { ...own, type: 'array', items };
  const known = BY_DESIGN.get(design);
  return { ...(known !== undefined && { type: known }), ...own };
}

const keywordsOf = ({ name = '', constraints = [] }: Rule): Part => KEYWORDS[name]?.(...constraints) ?? {};

function nested(type: ValidatedClass, property: string, reading: Reading): Part {
  const held = typeOf(type, property);
  if (held === Object)
    throw new TypeError(
      `${type.name}.${property} is nested: class-transformer's @Type must say of which class`,
    );
  return { ...jsonSchemaOfClass(held as ValidatedClass, reading) };
}

/** The class that `@Type` gives a property: the class of what class-transformer makes there. Object: none. */
function typeOf(type: ValidatedClass, property: string): unknown {
  const made = plainToInstance(type, { [property]: {} }) as Readonly<Record<string, object | undefined>>;
  return made[property]?.constructor ?? Object;
}
