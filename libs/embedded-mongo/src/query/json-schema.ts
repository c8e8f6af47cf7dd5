import { compareValues } from '../bson/compare.js';
import { type Document, getField, isDocument } from '../bson/document.js';
import { numberKind, toDouble } from '../bson/number.js';
import { codePoints } from '../bson/text.js';
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

/** Where a keyword stands: the schema around it, and a way to compile those in it. */
interface Place {
  readonly schema: Document;
  compile(schema: unknown): CompiledJsonSchema;
}

type Keyword = (argument: unknown, name: string, place: Place) => Rule;

/**
 * Compiles a schema of draft 4 as MongoDB reads it: `bsonType` beside `type`, no references, formats or defaults.
 * Errors: 9 for an unknown or malformed keyword, 14 for an argument of a wrong type, 238 for encryption.
 */
export function compileJsonSchema(schema: unknown, depth = 0): CompiledJsonSchema {
  if (!isDocument(schema)) throw typeMismatch('$jsonSchema must be an object');
  if (depth > MAX_DEPTH) throw createParseError(`$jsonSchema is nested more than ${MAX_DEPTH} levels deep`);
  if (Object.hasOwn(schema, 'type') && Object.hasOwn(schema, 'bsonType'))
    throw createParseError("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
  for (const [exclusive, name] of Object.entries(EXCLUSIVES)) {
    if (Object.hasOwn(schema, exclusive) && !Object.hasOwn(schema, name))
      throw createParseError(`$jsonSchema keyword '${name}' must be present if ${exclusive} is present`);
  }
  const place = { schema, compile: (inner: unknown) => compileJsonSchema(inner, depth + 1) };
  const rules: Rule[] = [];
  for (const name of Object.keys(schema)) {
    if (DESCRIBING.includes(name) || Object.hasOwn(EXCLUSIVES, name)) continue;
    if (UNSUPPORTED_KEYWORDS.has(name))
      throw createParseError(`$jsonSchema keyword '${name}' is not currently supported`);
    if (name === 'encrypt' || name === 'encryptMetadata') throw notImplemented(`$jsonSchema '${name}'`);
    const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
    if (!keyword) throw createParseError(`Unknown $jsonSchema keyword: ${name}`);
    rules.push(keyword(getField(schema, name), name, place));
  }
  for (const name of DESCRIBING.filter((word) => Object.hasOwn(schema, word)))
    requireKind(name, schema[name], isString, 'of type string');
  return {
    test: (value) => rules.every((rule) => rule.test(value)),
    failures: (value) => rules.filter((rule) => !rule.test(value)).map((rule) => rule.failure(value)),
  };
}

const DESCRIBING = ['title', 'description'];
/** What makes a bound exclusive says nothing without the bound. */
const EXCLUSIVES = { exclusiveMinimum: 'minimum', exclusiveMaximum: 'maximum' };
const UNSUPPORTED_KEYWORDS = new Set(['$ref', '$schema', 'default', 'definitions', 'format', 'id']);

type Kind<T> = (value: unknown) => value is T;
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
  isKind: Kind<T>,
  holds: (value: T) => boolean,
  reason: string,
  more: (value: unknown) => Document = () => ({}),
): Rule => ({
  test: (value) => !isKind(value) || holds(value),
  failure: (value) => {
    const specifiedAs = { [name]: argument };
    return { operatorName: name, specifiedAs, reason, consideredValue: value, ...more(value) };
  },
});

/** A keyword about objects that lists what is wrong with one. */
const listing = <T>(
  name: string,
  listFailing: (value: Document) => readonly T[],
  describe: (failing: readonly T[], value: Document) => Document,
): Rule => ({
  test: (value) => !isDocument(value) || listFailing(value).length === 0,
  failure: (value) => ({
    operatorName: name,
    ...describe(listFailing(value as Document), value as Document),
  }),
});

/** An argument of the type that its keyword takes. Errors: 14. */
function requireKind<T>(name: string, argument: unknown, isKind: Kind<T>, kind: string): T {
  if (isKind(argument)) return argument;
  throw typeMismatch(`$jsonSchema keyword '${name}' must be ${kind}`);
}

const requireNumber = (name: string, argument: unknown): number =>
  toDouble(requireKind(name, argument, isNumber, 'a number'));

function nonEmptyArray(name: string, argument: unknown): unknown[] {
  const list = requireKind(name, argument, isArray, 'an array');
  if (list.length === 0) throw createParseError(`$jsonSchema keyword '${name}' cannot be an empty array`);
  return list;
}

/** A bound of a size; what is less than none, or a part of one, is refused. */
const size =
  <T>(isKind: Kind<T>, measureSize: (value: T) => number, most: boolean, reason: string): Keyword =>
  (argument, name) => {
    const limit = requireNumber(name, argument);
    if (!Number.isInteger(limit) || limit < 0)
      throw createParseError(`$jsonSchema keyword '${name}' must be a non-negative whole number`);
    const holds = (value: T): boolean => (most ? measureSize(value) <= limit : measureSize(value) >= limit);
    return about(name, argument, isKind, holds, reason);
  };

const textSize = (most: boolean): Keyword =>
  size(isString, (text) => codePoints(text).length, most, 'specified string length was not satisfied');
const arraySize = (most: boolean): Keyword =>
  size(isArray, (items) => items.length, most, 'array did not match specified length');
const fieldCount = (most: boolean): Keyword =>
  size(
    isDocument,
    (value) => Object.keys(value).length,
    most,
    'specified number of properties was not satisfied',
  );

/** `minimum` and `maximum`, with the boolean of draft 4 that makes them exclusive. */
const compileBound =
  (exclusiveName: string, operator: '$gt' | '$lt'): Keyword =>
  (argument, name, { schema }) => {
    requireNumber(name, argument);
    const given = Object.hasOwn(schema, exclusiveName) ? schema[exclusiveName] : false;
    const exclusive = requireKind(exclusiveName, given, isBoolean, 'a boolean');
    const holds = testOrder(exclusive ? operator : `${operator}e`, argument);
    const specifiedAs = { [name]: argument, [exclusiveName]: true };
    return about(name, argument, isNumber, holds, 'comparison failed', () =>
      exclusive ? { specifiedAs } : {},
    );
  };

const jsonTypes = ['object', 'array', 'number', 'boolean', 'string', 'null'];

/** The types of BSON that `type` and `bsonType` name. */
const compileType: Keyword = (argument, name) => {
  const texts = isString(argument)
    ? [argument]
    : requireKind(name, argument, isTexts, 'either a string or an array of strings');
  if (texts.length === 0) throw createParseError(`$jsonSchema keyword '${name}' must name at least one type`);
  const aliases = texts.map((type) => {
    if (name === 'bsonType') return type;
    if (type === 'integer') throw createParseError("$jsonSchema type 'integer' is not currently supported.");
    if (!jsonTypes.includes(type)) throw createParseError(`Unknown type name alias: ${type}`);
    return type === 'boolean' ? 'bool' : type;
  });
  return about(name, argument, isAny, typeMatcher(aliases), 'type did not match', (value) => ({
    consideredType: typeName(value),
  }));
};

const enumeration: Keyword = (argument, name) => {
  const values = nonEmptyArray(name, argument);
  const isOne = (value: unknown): boolean => values.some((one) => compareValues(one, value) === 0);
  return about(name, argument, isAny, isOne, 'value was not found in enum');
};

const compileRequired: Keyword = (argument, name) => {
  const names = requireKind(name, nonEmptyArray(name, argument), isTexts, 'an array of strings');
  if (new Set(names).size < names.length)
    throw createParseError("$jsonSchema keyword 'required' array cannot contain duplicate values");
  return listing(
    name,
    (value) => names.filter((field) => !Object.hasOwn(value, field)),
    (missingProperties) => ({ specifiedAs: { required: argument }, missingProperties }),
  );
};

const schemasByName = (
  argument: unknown,
  name: string,
  place: Place,
): [string, CompiledJsonSchema, Document][] =>
  Object.entries(requireKind(name, argument, isDocument, 'an object')).map(([key, schema]) => [
    key,
    place.compile(schema),
    schema as Document,
  ]);

/** A schema's own words, which a failure repeats. */
const describeSchema = (schema: Document): Document =>
  Object.fromEntries(
    DESCRIBING.filter((name) => schema[name] !== undefined).map((name) => [name, schema[name]]),
  );

const properties: Keyword = (argument, name, place) => {
  const schemas = schemasByName(argument, name, place);
  return listing(
    name,
    (value) => schemas.filter(([field, schema]) => Object.hasOwn(value, field) && !schema.test(value[field])),
    (failing, value) => ({
      propertiesNotSatisfied: failing.map(([propertyName, schema, written]) => ({
        propertyName,
        ...describeSchema(written),
        details: schema.failures(value[propertyName]),
      })),
    }),
  );
};

const patternProperties: Keyword = (argument, name, place) => {
  const schemas = schemasByName(argument, name, place).map(
    ([pattern, schema]) => [compileRegex(pattern), schema, pattern] as const,
  );
  return listing(
    name,
    (value) =>
      schemas.flatMap(([pattern, schema, regexMatched]) =>
        Object.entries(value)
          .filter(([field, member]) => pattern.test(field) && !schema.test(member))
          .map(([propertyName, member]) => ({
            propertyName,
            regexMatched,
            details: schema.failures(member),
          })),
      ),
    (details) => ({ details }),
  );
};

const additionalProperties: Keyword = (argument, name, place) => {
  const keysOf = (other: string): string[] =>
    Object.keys((getField(place.schema, other) as Document | undefined) ?? {});
  const named = new Set(keysOf('properties'));
  const patterns = keysOf('patternProperties').map((pattern) => compileRegex(pattern));
  const allowed = booleanOrSchema(argument, name, place);
  const isOther = (field: string): boolean =>
    !named.has(field) && !patterns.some((pattern) => pattern.test(field));
  return listing(
    name,
    (value) => Object.keys(value).filter((field) => isOther(field) && !allowed(value[field])),
    (failing) => ({ specifiedAs: { additionalProperties: argument }, additionalProperties: failing }),
  );
};

const booleanOrSchema = (argument: unknown, name: string, place: Place): ((value: unknown) => boolean) =>
  typeof argument === 'boolean'
    ? () => argument
    : place.compile(requireKind(name, argument, isDocument, 'an object or a boolean')).test;

/** `items`: one schema for every entry, or one for each position. */
const items: Keyword = (argument, name, place) => {
  const schemas = isArray(argument) ? argument.map(place.compile) : place.compile(argument);
  const schemaAt = (index: number): CompiledJsonSchema | undefined =>
    isArray(schemas) ? schemas[index] : schemas;
  const findFailing = (value: unknown[]): number =>
    value.findIndex((item, index) => schemaAt(index)?.test(item) === false);
  return {
    test: (value) => !isArray(value) || findFailing(value) < 0,
    failure: (value) => {
      const itemIndex = findFailing(value as unknown[]);
      const reason = 'At least one item did not match the sub-schema';
      const details = schemaAt(itemIndex)?.failures((value as unknown[])[itemIndex]) ?? [];
      return { operatorName: name, reason, itemIndex, details };
    },
  };
};

const additionalItems: Keyword = (argument, name, place) => {
  const fixed = getField(place.schema, 'items');
  const allowed = booleanOrSchema(argument, name, place);
  const from = isArray(fixed) ? fixed.length : Infinity;
  const holds = (value: unknown[]): boolean => value.every((item, index) => index < from || allowed(item));
  return about(name, argument, isArray, holds, 'found additional items');
};

const uniqueItems: Keyword = (argument, name) => {
  requireKind(name, argument, isBoolean, 'a boolean');
  const unique = (value: unknown[]): boolean => {
    const sorted = [...value].sort((a, b) => compareValues(a, b));
    return sorted.every((item, index) => index === 0 || compareValues(sorted[index - 1], item) !== 0);
  };
  return about(name, argument, isArray, argument ? unique : () => true, 'found a duplicate item');
};

const pattern: Keyword = (argument, name) => {
  const regex = compileRegex(requireKind(name, argument, isString, 'a string'));
  return about(name, argument, isString, (value) => regex.test(value), 'regular expression did not match');
};

const compileMultipleOf: Keyword = (argument, name) => {
  const divisor = requireNumber(name, argument);
  if (!(divisor > 0)) throw createParseError("$jsonSchema keyword 'multipleOf' must have a positive value");
  const isMultiple = (value: unknown): boolean =>
    Number.isInteger(Number((toDouble(value) / divisor).toPrecision(15)));
  const reason = 'considered value is not a multiple of the specified value';
  return about(name, argument, isNumber, isMultiple, reason);
};

/** `allOf`, `anyOf` and `oneOf`, which differ in how many of the schemas have to hold. */
const compileCombined =
  (holds: (matching: number, all: number) => boolean): Keyword =>
  (argument, name, place) => {
    const schemas = nonEmptyArray(name, argument).map(place.compile);
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

const not: Keyword = (argument, name, place) => {
  const schema = place.compile(argument);
  return {
    test: (value) => !schema.test(value),
    failure: () => ({ operatorName: name, reason: 'child expression matched' }),
  };
};

/** What has to be there, or to hold, when a field is there. */
const dependencies: Keyword = (argument, name, place) => {
  const tests = Object.entries(requireKind(name, argument, isDocument, 'an object')).map(
    ([field, needed]): [string, (value: Document) => boolean] =>
      isTexts(needed) && needed.length > 0
        ? [field, (value) => needed.every((one) => Object.hasOwn(value, one))]
        : [field, place.compile(needed).test],
  );
  return listing(
    name,
    (value) => tests.filter(([field, test]) => Object.hasOwn(value, field) && !test(value)),
    (failing) => ({ failingDependencies: failing.map(([conditionalProperty]) => ({ conditionalProperty })) }),
  );
};

const keywords: Readonly<Record<string, Keyword>> = {
  bsonType: compileType,
  type: compileType,
  enum: enumeration,
  required: compileRequired,
  properties,
  patternProperties,
  additionalProperties,
  dependencies,
  minProperties: fieldCount(false),
  maxProperties: fieldCount(true),
  items,
  additionalItems,
  minItems: arraySize(false),
  maxItems: arraySize(true),
  uniqueItems,
  minimum: compileBound('exclusiveMinimum', '$gt'),
  maximum: compileBound('exclusiveMaximum', '$lt'),
  multipleOf: compileMultipleOf,
  minLength: textSize(false),
  maxLength: textSize(true),
  pattern,
  allOf: compileCombined((matching, all) => matching === all),
  anyOf: compileCombined((matching) => matching > 0),
  oneOf: compileCombined((matching) => matching === 1),
  not,
};
