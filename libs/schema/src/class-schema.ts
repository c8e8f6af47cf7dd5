import 'reflect-metadata';
import { isDeepStrictEqual } from 'node:util';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, ValidateBy, ValidateIf } from 'class-validator';
import { type DecoratedClass, getDeclaredSchema, type JsonSchema } from './property.decorators.js';

type Part = Record<string, unknown>;

/** One decorator on one property, as class-validator stores it. */
interface Rule {
  readonly propertyName: string;
  readonly type: string;
  readonly name?: string;
  readonly constraints?: readonly unknown[];
  readonly each?: boolean;
  readonly message?: unknown;
}

/** Makes the schema of a class within another one. */
type CompileNested = (type: DecoratedClass) => JsonSchema;

const KEYWORDS = 'keywords of JSON Schema';

/**
 * The keywords of a property, where class-validator has no decorator for them. Such a class is checked by its schema.
 * @param keywords of the property; it may compile other classes
 */
export function Keywords(keywords: (compile: CompileNested) => JsonSchema): PropertyDecorator {
  return ValidateBy({
    name: KEYWORDS,
    constraints: [keywords],
    validator: { validate: () => true, defaultMessage: () => '$property is checked by its schema' },
  });
}

const isNotNull = (_: unknown, value: unknown): boolean => value !== null;

/** A property that may be null. */
export function Nullable(): PropertyDecorator {
  return ValidateIf(isNotNull);
}

const numeric =
  (name: string) =>
  (value: unknown): Part => ({ [name]: value });

/** What the usual decorators mean in JSON Schema. Others are checked, but the schema does not tell them. */
const MEANINGS: Readonly<Record<string, (...constraints: unknown[]) => JsonSchema>> = {
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
  matches: (pattern) =>
    pattern instanceof RegExp && pattern.flags === ''
      ? { pattern: pattern.source.replaceAll('\\/', '/') }
      : {},
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
  isDate: () => ({ type: 'string', format: 'date-time' }),
  isMongoId: () => ({ type: 'string', pattern: '^[0-9a-fA-F]{24}$' }),
};

const DESIGN_TYPES = new Map<unknown, string>([
  [String, 'string'],
  [Number, 'number'],
  [Boolean, 'boolean'],
  [Array, 'array'],
]);

export interface CompileOptions {
  /** The properties in order. Default: in the order of their first decorators. */
  readonly names?: (type: DecoratedClass) => Iterable<string>;
  /** More keywords of a property. */
  readonly describe?: (type: DecoratedClass, name: string) => JsonSchema;
  /** The types of properties as TypeScript emits them count where no decorator tells one. Default false. */
  readonly designTypes?: boolean;
  /** The initial values of properties are their defaults, and such properties are not required. Default false. */
  readonly initialValues?: boolean;
  /** The `message` of `@Matches` says in words what the pattern accepts. Default false. */
  readonly patternWords?: boolean;
  /** Keys that belong elsewhere, and what to write instead. Default none. */
  readonly elsewhere?: (type: DecoratedClass) => Readonly<Record<string, string>> | undefined;
}

/**
 * The JSON Schema of a class, from the decorators of its properties.
 * @throws TypeError for a class without decorated properties, and for a recursive one
 */
export function compileClass(
  type: DecoratedClass,
  options: CompileOptions = {},
  outer: readonly DecoratedClass[] = [],
): JsonSchema {
  if (outer.includes(type)) throw new TypeError(`has no JSON Schema: ${type.name} contains itself`);
  const rules = readRules(type);
  if (rules.size === 0) throw new TypeError(`is the class ${type.name} without class-validator decorators`);
  const compileNested = (nested: DecoratedClass) => compileClass(nested, options, [...outer, type]);
  const values = options.initialValues ? readInitialValues(type) : {};
  const properties: Part = {};
  const required: string[] = [];
  for (const name of options.names?.(type) ?? rules.keys()) {
    const declared = getDeclaredSchema(type, name);
    if (declared === null) continue;
    const own = rules.get(name) ?? [];
    const keywords = readKeywords(type, name, own, compileNested, options.patternWords ?? false);
    const typed = options.designTypes ? addDesignType(type, name, keywords) : mergeItems(keywords);
    properties[name] = {
      ...addNull(own.some(isNotEmptyRule) ? refuseEmpty(typed) : typed, own),
      ...showDefault(values[name]),
      ...describeApiProperty(type, name, typed),
      ...options.describe?.(type, name),
      ...declared,
    };
    if (!own.some(mayBeMissing) && values[name] === undefined) required.push(name);
  }
  const elsewhere = options.elsewhere?.(type);
  return {
    type: 'object',
    properties,
    required,
    additionalProperties: false,
    ...(elsewhere && { elsewhere }),
  };
}

/** The decorators of class-validator on each property of a class. */
function readRules(type: DecoratedClass): ReadonlyMap<string, readonly Rule[]> {
  const rules = new Map<string, Rule[]>();
  const found: readonly Rule[] = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  for (const rule of found) rules.set(rule.propertyName, [...(rules.get(rule.propertyName) ?? []), rule]);
  return rules;
}

const isNullRule = ({ constraints }: Rule): boolean => constraints?.[0] === isNotNull;
const mayBeMissing = (rule: Rule): boolean => rule.type === 'conditionalValidation' && !isNullRule(rule);

const isNotEmptyRule = ({ name, each }: Rule): boolean => name === 'isNotEmpty' && !each;

/** `@IsNotEmpty` refuses the empty text; an empty list or object passes it. */
const refuseEmpty = (schema: JsonSchema): JsonSchema =>
  schema['type'] === 'string' ? { minLength: 1, ...schema } : schema;

/** Where `@ApiProperty` of @nestjs/swagger keeps its options. */
const API_PROPERTIES = 'swagger/apiModelProperties';

interface ApiProperty {
  readonly description?: unknown;
  readonly example?: unknown;
  readonly enum?: unknown;
  readonly items?: { readonly enum?: unknown };
}

/** What `@ApiProperty` tells of a property. Choices of class-validator, which are checked, come before its own. */
function describeApiProperty(type: DecoratedClass, name: string, typed: JsonSchema): JsonSchema {
  const told = Reflect.getMetadata(API_PROPERTIES, type.prototype as object, name) as ApiProperty | undefined;
  if (!told) return {};
  const { description, example, enum: values, items } = told;
  const ofItems = typed['items'] as JsonSchema | undefined;
  return {
    ...(typeof description === 'string' && { description }),
    ...(example !== undefined && { examples: [example] }),
    ...(Array.isArray(values) && typed['enum'] === undefined && { enum: values as unknown[] }),
    ...(Array.isArray(items?.enum) &&
      ofItems?.['enum'] === undefined && { items: { ...ofItems, enum: items.enum as unknown[] } }),
  };
}

interface PropertyKeywords {
  readonly own: JsonSchema;
  /** Of the entries of a list. */
  readonly items: JsonSchema;
}

function readKeywords(
  type: DecoratedClass,
  property: string,
  rules: readonly Rule[],
  compile: CompileNested,
  patternWords: boolean,
): PropertyKeywords {
  const own: Part = {};
  const items: Part = {};
  for (const rule of rules) {
    const { name = '', constraints = [], each } = rule;
    if (rule.type === 'nestedValidation') {
      const isList = each || readDesignType(type, property) === Array;
      Object.assign(isList ? items : own, compile(readNestedClass(type, property)));
    } else if (name === KEYWORDS)
      Object.assign(own, (constraints[0] as (compile: CompileNested) => JsonSchema)(compile));
    else Object.assign(each ? items : own, MEANINGS[name]?.(...constraints));
    if (patternWords && name === 'matches' && typeof rule.message === 'string')
      Object.assign(each ? items : own, { patternWords: rule.message });
  }
  return { own, items };
}

const readDesignType = (type: DecoratedClass, property: string): unknown =>
  Reflect.getMetadata('design:type', type.prototype as object, property);

const mergeItems = ({ own, items }: PropertyKeywords): JsonSchema =>
  Object.keys(items).length > 0 ? { ...own, items } : own;

function addDesignType(type: DecoratedClass, property: string, { own, items }: PropertyKeywords): JsonSchema {
  const design = readDesignType(type, property);
  const isList = design === Array || own['type'] === 'array' || Object.keys(items).length > 0;
  if (isList) return { ...own, type: 'array', items };
  const known = DESIGN_TYPES.get(design);
  return { ...(known !== undefined && { type: known }), ...own };
}

const addNull = (schema: JsonSchema, rules: readonly Rule[]): JsonSchema =>
  rules.some(isNullRule) ? { ...schema, type: [schema['type'], 'null'] } : schema;

/**
 * Where a value has other than an ISO date for an `@IsDate` property, nested ones too: class-transformer's `@Type(() => Date)`
 * would make a date of any text and number.
 * @param isDate of a JSON value
 */
export function findUnreadDates(
  type: DecoratedClass,
  given: unknown,
  isDate: (value: unknown) => boolean,
  path = '',
): string[] {
  if (Array.isArray(given))
    return given.flatMap((one, at) => findUnreadDates(type, one, isDate, `${path}${at}.`));
  if (typeof given !== 'object' || given === null) return [];
  return [...readRules(type)].flatMap(([property, rules]) => {
    const value = Object.hasOwn(given, property) ? (given as Part)[property] : undefined;
    if (value === undefined || value === null) return [];
    return rules.flatMap((rule) => {
      if (rule.type === 'nestedValidation')
        return findUnreadDates(readNestedClass(type, property), value, isDate, `${path}${property}.`);
      if (rule.name !== 'isDate') return [];
      const values: readonly unknown[] = rule.each && Array.isArray(value) ? value : [value];
      return values.every(isDate) ? [] : [`${path}${property} must be an ISO 8601 date`];
    });
  });
}

/** The class that `@Type` gives a property: the class of what class-transformer makes there. */
function readNestedClass(type: DecoratedClass, property: string): DecoratedClass {
  const made = plainToInstance(type, { [property]: {} }) as Readonly<Record<string, object | undefined>>;
  const nested = made[property]?.constructor;
  if (nested === undefined || nested === Object)
    throw new TypeError(
      `${type.name}.${property} is nested: class-transformer's @Type must say of which class`,
    );
  return nested as DecoratedClass;
}

/** What the properties of a new instance hold. Empty for a class whose constructor needs arguments. */
function readInitialValues(type: DecoratedClass): Readonly<Record<string, unknown>> {
  try {
    return { ...new type() };
  } catch {
    return {};
  }
}

/** The keyword for a value that JSON can hold; another one, such as the current date, is not shown. */
function showDefault(value: unknown): JsonSchema {
  try {
    const shown: unknown = JSON.parse(JSON.stringify(value));
    return isDeepStrictEqual(shown, value) ? { default: shown } : {};
  } catch {
    return {};
  }
}
