import 'reflect-metadata';
import type * as ClassTransformer from 'class-transformer';
import type * as ClassValidator from 'class-validator';
import type { JsonSchema } from '../../tool.js';
import type { ValidatedClass } from './validated-class.js';

export interface ValidationLibraries {
  readonly validator: Pick<typeof ClassValidator, 'validate' | 'getMetadataStorage'>;
  readonly transformer: Pick<typeof ClassTransformer, 'plainToInstance'>;
  readonly types: { readonly defaultMetadataStorage: TypeStorage };
}

/** Which class a nested property becomes: `@Type` of class-transformer. */
interface TypeStorage {
  findTypeMetadata(target: object, property: string): { typeFunction(): unknown } | undefined;
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

/** What the usual decorators say in JSON Schema. One that is not here is checked all the same; it is only not told. */
const TOLD: Readonly<Record<string, (...constraints: unknown[]) => Part>> = {
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

/** @throws TypeError for a class without decorated properties, and for one that holds itself */
export function jsonSchemaOfClass(
  type: ValidatedClass,
  libraries: ValidationLibraries,
  outer: readonly unknown[] = [],
): JsonSchema {
  if (outer.includes(type)) throw new TypeError(`cannot be told: ${type.name} holds itself`);
  const rules = libraries.validator
    .getMetadataStorage()
    .getTargetValidationMetadatas(type, '', false, false) as unknown as readonly Rule[];
  const byProperty = grouped(rules);
  if (byProperty.size === 0)
    throw new TypeError(`is the class ${type.name} without class-validator decorators`);
  const properties: Part = {};
  const required: string[] = [];
  for (const [name, own] of byProperty) {
    properties[name] = propertySchema(type, name, own, libraries, [...outer, type]);
    if (!own.some((rule) => rule.type === 'conditionalValidation')) required.push(name);
  }
  return { type: 'object', properties, required, additionalProperties: false };
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
  libraries: ValidationLibraries,
  outer: readonly unknown[],
): JsonSchema {
  const design: unknown = Reflect.getMetadata('design:type', type.prototype as object, property);
  const own: Part = {};
  const items: Part = {};
  for (const rule of rules) {
    const told = rule.type === 'nestedValidation' ? nested(type, property, libraries, outer) : toldOf(rule);
    Object.assign(
      rule.each === true || (rule.type === 'nestedValidation' && design === Array) ? items : own,
      told,
    );
  }
  const isList = design === Array || own['type'] === 'array' || Object.keys(items).length > 0;
  if (isList) return { ...own, type: 'array', items };
  const known = BY_DESIGN.get(design);
  return { ...(known !== undefined && { type: known }), ...own };
}

const toldOf = ({ name = '', constraints = [] }: Rule): Part => TOLD[name]?.(...constraints) ?? {};

function nested(
  type: ValidatedClass,
  property: string,
  libraries: ValidationLibraries,
  outer: readonly unknown[],
): Part {
  const held = libraries.types.defaultMetadataStorage.findTypeMetadata(type, property)?.typeFunction();
  if (typeof held !== 'function')
    throw new TypeError(
      `${type.name}.${property} is nested: class-transformer's @Type must say of which class`,
    );
  return { ...jsonSchemaOfClass(held as ValidatedClass, libraries, outer) };
}
