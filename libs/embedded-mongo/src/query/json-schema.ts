import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { typeMatcher, typeName } from '../bson/type-name.js';
import { createParseError, notImplemented, typeMismatch } from '../errors.js';
import { compileRegex } from './regex.js';
import { testOrder } from './value-tests.js';

/** One keyword of a schema, compiled: whether a value satisfies it, and what is wrong with one that does not. */
interface Rule {
  test(value: unknown): boolean;
  /** The entry of `schemaRulesNotSatisfied`; only asked about values that fail. */
  failure(value: unknown): Document;
}

/** A compiled `$jsonSchema`. */
export interface CompiledJsonSchema {
  test(value: unknown): boolean;
  /** What a value that fails does not satisfy, in the form of `errInfo.details` of error 121. */
  failures(value: unknown): Document[];
}

/** Depth of nested schemas, as deep as a document may be. */
const MAX_DEPTH = 100;

type Keyword = (argument: unknown, schema: Document, depth: number) => Rule;

/**
 * Compiles a schema of draft 4 as MongoDB reads it: `bsonType` beside `type`, no references, formats or defaults.
 * Errors: 9 for an unknown or malformed keyword, 14 for an argument of a wrong type, 238 for encryption.
 */
export function compileJsonSchema(schema: unknown, depth = 0): CompiledJsonSchema {
  if (!isDocument(schema)) throw typeMismatch('$jsonSchema must be an object');
  if (depth > MAX_DEPTH) throw createParseError(`$jsonSchema is nested more than ${MAX_DEPTH} levels deep`);
  if (Object.hasOwn(schema, 'type') && Object.hasOwn(schema, 'bsonType'))
    throw createParseError("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
  requireBound(schema, 'exclusiveMinimum', 'minimum');
  requireBound(schema, 'exclusiveMaximum', 'maximum');
  const rules: Rule[] = [];
  for (const name of Object.keys(schema)) {
    if (MODIFIERS.has(name)) continue;
    if (UNSUPPORTED_KEYWORDS.has(name))
      throw createParseError(`$jsonSchema keyword '${name}' is not currently supported`);
    if (name === 'encrypt' || name === 'encryptMetadata') throw notImplemented(`$jsonSchema '${name}'`);
    const keyword = keywords.get(name);
    if (!keyword) throw createParseError(`Unknown $jsonSchema keyword: ${name}`);
    rules.push(keyword(getField(schema, name), schema, depth));
  }
  for (const name of ['title', 'description'])
    requireKind(name, getField(schema, name) ?? '', isString, 'of type string');
  return {
    test: (value) => rules.every((rule) => rule.test(value)),
    failures: (value) => rules.filter((rule) => !rule.test(value)).map((rule) => rule.failure(value)),
  };
}

/** Keywords that another one reads, or that only describe. */
const MODIFIERS = new Set(['title', 'description', 'exclusiveMinimum', 'exclusiveMaximum']);
const UNSUPPORTED_KEYWORDS = new Set(['$ref', '$schema', 'default', 'definitions', 'format', 'id']);

const isObject = isDocument;
const isArray = (value: unknown): value is unknown[] => Array.isArray(value);
const isString = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => numberKind(value) !== undefined;
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const isTexts = (value: unknown): value is string[] => isArray(value) && value.every(isString);
const isAny = (_value: unknown): _value is unknown => true;

/** A keyword that says something about values of one kind, and nothing about others. */
const about = <T>(
  name: string,
  argument: unknown,
  isKind: (value: unknown) => value is T,
  holds: (value: T) => boolean,
  reason: string,
  more: (value: unknown) => Document = () => ({}),
): Rule => ({
  test: (value) => !isKind(value) || holds(value),
  failure: (value) => ({
    operatorName: name,
    specifiedAs: { [name]: argument },
    reason,
    consideredValue: value,
    ...more(value),
  }),
});

/** A keyword about objects that lists what is wrong with one. */
const listing = <T>(
  name: string,
  listFailing: (value: Document) => readonly T[],
  describe: (failing: readonly T[], value: Document) => Document,
): Rule => ({
  test: (value) => !isObject(value) || listFailing(value).length === 0,
  failure: (value) => ({
    operatorName: name,
    ...describe(listFailing(value as Document), value as Document),
  }),
});

/** An argument of the type that its keyword takes. Errors: 14. */
function requireKind<T>(
  name: string,
  argument: unknown,
  isKind: (value: unknown) => value is T,
  kind: string,
): T {
  if (isKind(argument)) return argument;
  throw typeMismatch(`$jsonSchema keyword '${name}' must be ${kind}`);
}

const requireNumber = (name: string, argument: unknown): number =>
  toDouble(requireKind(name, argument, isNumber, 'a number'));

function wholeNumber(name: string, argument: unknown): number {
  const number = requireNumber(name, argument);
  if (Number.isInteger(number) && number >= 0) return number;
  throw createParseError(`$jsonSchema keyword '${name}' must be a non-negative whole number`);
}

function nonEmptyArray(name: string, argument: unknown): unknown[] {
  const list = requireKind(name, argument, isArray, 'an array');
  if (list.length === 0) throw createParseError(`$jsonSchema keyword '${name}' cannot be an empty array`);
  return list;
}

const size =
  <T>(
    isKind: (value: unknown) => value is T,
    measureSize: (value: T) => number,
    fits: (size: number, limit: number) => boolean,
    reason: string,
  ) =>
  (name: string): Keyword =>
  (argument) => {
    const limit = wholeNumber(name, argument);
    return about(name, argument, isKind, (value) => fits(measureSize(value), limit), reason);
  };

const atMost = (count: number, limit: number): boolean => count <= limit;
const atLeast = (count: number, limit: number): boolean => count >= limit;
const characters = (text: string): number => Array.from(text).length;
const fieldCount = (value: Document): number => Object.keys(value).length;
const LENGTH = 'specified string length was not satisfied';
const ITEMS = 'array did not match specified length';
const FIELDS = 'specified number of properties was not satisfied';

/** `minimum` and `maximum`, with the boolean of draft 4 that makes them exclusive. */
const compileBound =
  (name: string, exclusiveName: string, sign: 1 | -1): Keyword =>
  (argument, schema) => {
    requireNumber(name, argument);
    const given = Object.hasOwn(schema, exclusiveName) ? schema[exclusiveName] : false;
    const exclusive = requireKind(exclusiveName, given, isBoolean, 'a boolean');
    const holds = testOrder(`${sign > 0 ? '$gt' : '$lt'}${exclusive ? '' : 'e'}`, argument);
    const specifiedAs = { [name]: argument, [exclusiveName]: true };
    return about(name, argument, isNumber, holds, 'comparison failed', () =>
      exclusive ? { specifiedAs } : {},
    );
  };

/** `exclusiveMinimum` without `minimum` says nothing; MongoDB refuses it. */
function requireBound(schema: Document, exclusive: string, name: string): void {
  if (Object.hasOwn(schema, exclusive) && !Object.hasOwn(schema, name))
    throw createParseError(`$jsonSchema keyword '${name}' must be present if ${exclusive} is present`);
}

const jsonTypes: Readonly<Record<string, string>> = {
  object: 'object',
  array: 'array',
  number: 'number',
  boolean: 'bool',
  string: 'string',
  null: 'null',
};

const typeRule = (name: string, argument: unknown, aliases: readonly string[]): Rule =>
  about(name, argument, isAny, typeMatcher(aliases), 'type did not match', (value) => ({
    consideredType: typeName(value),
  }));

function textList(name: string, argument: unknown): string[] {
  if (typeof argument === 'string') return [argument];
  const texts = requireKind(name, argument, isTexts, 'either a string or an array of strings');
  if (texts.length === 0) throw createParseError(`$jsonSchema keyword '${name}' must name at least one type`);
  return texts;
}

const bsonType: Keyword = (argument) => typeRule('bsonType', argument, textList('bsonType', argument));

const jsonType: Keyword = (argument) => {
  const aliases = textList('type', argument).map((type) => {
    if (type === 'integer') throw createParseError("$jsonSchema type 'integer' is not currently supported.");
    const alias = Object.hasOwn(jsonTypes, type) ? jsonTypes[type] : undefined;
    if (alias === undefined) throw createParseError(`Unknown type name alias: ${type}`);
    return alias;
  });
  return typeRule('type', argument, aliases);
};

const enumeration: Keyword = (argument) => {
  const values = nonEmptyArray('enum', argument);
  const isOne = (value: unknown): boolean => values.some((one) => compareValues(one, value) === 0);
  return about('enum', argument, isAny, isOne, 'value was not found in enum');
};

const compileRequired: Keyword = (argument) => {
  const names = requireKind('required', nonEmptyArray('required', argument), isTexts, 'an array of strings');
  if (new Set(names).size < names.length)
    throw createParseError("$jsonSchema keyword 'required' array cannot contain duplicate values");
  return listing(
    'required',
    (value) => names.filter((name) => !Object.hasOwn(value, name)),
    (missingProperties) => ({ specifiedAs: { required: argument }, missingProperties }),
  );
};

function schemasByName(
  name: string,
  argument: unknown,
  depth: number,
): [string, CompiledJsonSchema, Document][] {
  return Object.entries(requireKind(name, argument, isObject, 'an object')).map(([key, schema]) => [
    key,
    compileJsonSchema(schema, depth + 1),
    schema as Document,
  ]);
}

/** A schema's own words, which a failure repeats. */
function describeSchema(schema: Document): Document {
  const words: Document = {};
  for (const name of ['title', 'description']) if (schema[name] !== undefined) words[name] = schema[name];
  return words;
}

const properties: Keyword = (argument, _schema, depth) => {
  const schemas = schemasByName('properties', argument, depth);
  return listing(
    'properties',
    (value) => schemas.filter(([name, schema]) => Object.hasOwn(value, name) && !schema.test(value[name])),
    (failing, value) => ({
      propertiesNotSatisfied: failing.map(([name, schema, written]) => ({
        propertyName: name,
        ...describeSchema(written),
        details: schema.failures(value[name]),
      })),
    }),
  );
};

const patternProperties: Keyword = (argument, _schema, depth) => {
  const schemas = schemasByName('patternProperties', argument, depth).map(
    ([pattern, schema]) => [compileRegex(pattern), schema, pattern] as const,
  );
  return listing(
    'patternProperties',
    (value) =>
      schemas.flatMap(([pattern, schema, regexMatched]) =>
        Object.keys(value)
          .filter((name) => pattern.test(name) && !schema.test(value[name]))
          .map((propertyName) => ({
            propertyName,
            regexMatched,
            details: schema.failures(value[propertyName]),
          })),
      ),
    (details) => ({ details }),
  );
};

const additionalProperties: Keyword = (argument, schema, depth) => {
  const named = new Set(Object.keys((getField(schema, 'properties') as Document | undefined) ?? {}));
  const patterns = Object.keys((getField(schema, 'patternProperties') as Document | undefined) ?? {}).map(
    (pattern) => compileRegex(pattern),
  );
  const allowed = booleanOrSchema('additionalProperties', argument, depth);
  const isOther = (name: string): boolean =>
    !named.has(name) && !patterns.some((pattern) => pattern.test(name));
  return listing(
    'additionalProperties',
    (value) => Object.keys(value).filter((name) => isOther(name) && !allowed(value[name])),
    (failing) => ({ specifiedAs: { additionalProperties: argument }, additionalProperties: failing }),
  );
};

function booleanOrSchema(name: string, argument: unknown, depth: number): (value: unknown) => boolean {
  if (typeof argument === 'boolean') return () => argument;
  return compileJsonSchema(requireKind(name, argument, isObject, 'an object or a boolean'), depth + 1).test;
}

/** `items`: one schema for every entry, or one for each position. */
const items: Keyword = (argument, _schema, depth) => {
  const schemas = Array.isArray(argument)
    ? argument.map((schema: unknown) => compileJsonSchema(schema, depth + 1))
    : compileJsonSchema(argument, depth + 1);
  const schemaAt = (index: number): CompiledJsonSchema | undefined =>
    Array.isArray(schemas) ? schemas[index] : schemas;
  const listFailing = (value: unknown[]): number =>
    value.findIndex((item, index) => schemaAt(index)?.test(item) === false);
  return {
    test: (value) => !isArray(value) || listFailing(value) < 0,
    failure: (value) => {
      const index = listFailing(value as unknown[]);
      return {
        operatorName: 'items',
        reason: 'At least one item did not match the sub-schema',
        itemIndex: index,
        details: schemaAt(index)?.failures((value as unknown[])[index]) ?? [],
      };
    },
  };
};

const additionalItems: Keyword = (argument, schema, depth) => {
  const fixed = getField(schema, 'items');
  const allowed = booleanOrSchema('additionalItems', argument, depth);
  const from = Array.isArray(fixed) ? fixed.length : Infinity;
  return about(
    'additionalItems',
    argument,
    isArray,
    (value) => value.every((item, index) => index < from || allowed(item)),
    'found additional items',
  );
};

const uniqueItems: Keyword = (argument) => {
  requireKind('uniqueItems', argument, isBoolean, 'a boolean');
  const unique = (value: unknown[]): boolean => {
    const sorted = [...value].sort((a, b) => compareValues(a, b));
    return sorted.every((item, index) => index === 0 || compareValues(sorted[index - 1], item) !== 0);
  };
  const holds = argument ? unique : () => true;
  return about('uniqueItems', argument, isArray, holds, 'found a duplicate item');
};

const pattern: Keyword = (argument) => {
  const regex = compileRegex(requireKind('pattern', argument, isString, 'a string'));
  return about(
    'pattern',
    argument,
    isString,
    (value) => regex.test(value),
    'regular expression did not match',
  );
};

const compileMultipleOf: Keyword = (argument) => {
  const divisor = requireNumber('multipleOf', argument);
  if (!(divisor > 0)) throw createParseError("$jsonSchema keyword 'multipleOf' must have a positive value");
  const isMultiple = (value: unknown): boolean =>
    Number.isInteger(Number((toDouble(value) / divisor).toPrecision(15)));
  const reason = 'considered value is not a multiple of the specified value';
  return about('multipleOf', argument, isNumber, isMultiple, reason);
};

/** `compileAll`, `anyOf` and `requireOneOf`, which differ in how many of the schemas have to hold. */
const compileCombined =
  (name: string, holds: (matching: number, all: number) => boolean): Keyword =>
  (argument, _schema, depth) => {
    const schemas = nonEmptyArray(name, argument).map((schema) => compileJsonSchema(schema, depth + 1));
    return {
      test: (value) => holds(schemas.filter((schema) => schema.test(value)).length, schemas.length),
      failure: (value) => ({
        operatorName: name,
        schemasNotSatisfied: schemas.flatMap((schema, index) =>
          schema.test(value) ? [] : [{ index, details: schema.failures(value) }],
        ),
      }),
    };
  };

const not: Keyword = (argument, _schema, depth) => {
  const schema = compileJsonSchema(argument, depth + 1);
  return {
    test: (value) => !schema.test(value),
    failure: () => ({ operatorName: 'not', reason: 'child expression matched' }),
  };
};

/** What has to be there, or to hold, when a field is there. */
const dependencies: Keyword = (argument, _schema, depth) => {
  const rules = Object.entries(requireKind('dependencies', argument, isObject, 'an object')).map(
    ([name, needed]) => {
      if (Array.isArray(needed) && needed.every(isString) && needed.length > 0)
        return { name, test: (value: Document) => needed.every((one) => Object.hasOwn(value, one)) };
      const schema = compileJsonSchema(needed, depth + 1);
      return { name, test: (value: Document) => schema.test(value) };
    },
  );
  return listing(
    'dependencies',
    (value) => rules.filter(({ name, test }) => Object.hasOwn(value, name) && !test(value)),
    (failing) => ({ failingDependencies: failing.map(({ name }) => ({ conditionalProperty: name })) }),
  );
};

const minimum = compileBound('minimum', 'exclusiveMinimum', 1);
const maximum = compileBound('maximum', 'exclusiveMaximum', -1);

const keywords: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['bsonType', bsonType],
  ['type', jsonType],
  ['enum', enumeration],
  ['required', compileRequired],
  ['properties', properties],
  ['patternProperties', patternProperties],
  ['additionalProperties', additionalProperties],
  ['dependencies', dependencies],
  ['minProperties', size(isObject, fieldCount, atLeast, FIELDS)('minProperties')],
  ['maxProperties', size(isObject, fieldCount, atMost, FIELDS)('maxProperties')],
  ['items', items],
  ['additionalItems', additionalItems],
  ['minItems', size(isArray, (value) => value.length, atLeast, ITEMS)('minItems')],
  ['maxItems', size(isArray, (value) => value.length, atMost, ITEMS)('maxItems')],
  ['uniqueItems', uniqueItems],
  ['minimum', minimum],
  ['maximum', maximum],
  ['multipleOf', compileMultipleOf],
  ['minLength', size(isString, characters, atLeast, LENGTH)('minLength')],
  ['maxLength', size(isString, characters, atMost, LENGTH)('maxLength')],
  ['pattern', pattern],
  ['allOf', compileCombined('allOf', (matching, all) => matching === all)],
  ['anyOf', compileCombined('anyOf', (matching) => matching > 0)],
  ['oneOf', compileCombined('oneOf', (matching) => matching === 1)],
  ['not', not],
]);
