import {
  ANY_OF,
  getMetadataStorage,
  isNotNull,
  isOptionsClass,
  LIST_OF,
  MAP_OF,
  NESTED,
  type OptionsClass,
  optionsOf,
  type Plain,
  type ValueType,
} from './option.js';
import type { SchemaNode, SchemaType } from './schema-node.js';

type Part = { -readonly [Member in keyof SchemaNode]: SchemaNode[Member] };

/** One decorator of class-validator on one property. */
interface Rule {
  readonly propertyName: string;
  readonly name?: string;
  readonly constraints?: readonly unknown[];
  readonly each?: boolean;
}

/** How a class within another is read. */
type ReadType = (type: ValueType) => SchemaNode;

/** What class-validator's decorators and ours mean in JSON Schema. */
const MEANINGS: Readonly<Record<string, (constraints: readonly unknown[], read: ReadType) => Part>> = {
  isString: () => ({ type: 'string' }),
  isBoolean: () => ({ type: 'boolean' }),
  isNumber: () => ({ type: 'number' }),
  isInt: () => ({ type: 'integer' }),
  isObject: () => ({ type: 'object' }),
  isArray: () => ({ type: 'array' }),
  isPositive: () => ({ exclusiveMinimum: 0 }),
  min: ([minimum]) => ({ minimum: minimum as number }),
  max: ([maximum]) => ({ maximum: maximum as number }),
  minLength: ([minLength]) => ({ minLength: minLength as number }),
  arrayMinSize: ([minItems]) => ({ minItems: minItems as number }),
  arrayMaxSize: ([maxItems]) => ({ maxItems: maxItems as number }),
  arrayUnique: () => ({ uniqueItems: true }),
  matches: ([pattern]) => ({ pattern: (pattern as RegExp).source.replaceAll('\\/', '/') }),
  isIn: ([values]) => ({ enum: values as readonly unknown[] }),
  equals: ([value]) => ({ const: value }),
  [NESTED]: ([type], read) => read(type as ValueType),
  [LIST_OF]: ([type], read) => ({ type: 'array', items: read(type as ValueType) }),
  [MAP_OF]: ([type, names], read) => ({
    type: 'object',
    ...(names !== undefined && { propertyNames: names as SchemaNode }),
    additionalProperties: read(type as ValueType),
  }),
  [ANY_OF]: (types, read) => ({ anyOf: types.map((type) => read(type as ValueType)) }),
};

function rulesOf(type: OptionsClass): ReadonlyMap<string, readonly Rule[]> {
  const rules = new Map<string, Rule[]>();
  const found = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false) as readonly Rule[];
  for (const rule of found) rules.set(rule.propertyName, [...(rules.get(rule.propertyName) ?? []), rule]);
  return rules;
}

function optionSchema(rules: readonly Rule[], read: ReadType): SchemaNode {
  const own: Part = {};
  const items: Part = {};
  for (const { name = '', constraints = [], each = false } of rules)
    Object.assign(each ? items : own, MEANINGS[name]?.(constraints, read));
  const schema: Part = Object.keys(items).length > 0 ? { ...own, items } : own;
  const nullable = rules.some(({ constraints }) => constraints?.[0] === isNotNull);
  return nullable ? { ...schema, type: [schema.type as SchemaType, 'null'] } : schema;
}

const schemas = new WeakMap<object, SchemaNode>();

/** The schema that a class of options is checked by. */
export function schemaOf(type: ValueType): SchemaNode {
  if (!isOptionsClass(type)) return type;
  const known = schemas.get(type);
  if (known) return known;
  const schema = classSchema(type, schemaOf);
  schemas.set(type, schema);
  return schema;
}

function classSchema(
  type: OptionsClass,
  within: ReadType,
  describe: (schema: SchemaNode, name: string) => SchemaNode = (schema) => schema,
): SchemaNode {
  const rules = rulesOf(type);
  const options = [...optionsOf(type)];
  const required = options.filter(([, option]) => option.required).map(([name]) => name);
  return {
    type: 'object',
    additionalProperties: false,
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(
      options.map(([name]) => [name, describe(optionSchema(rules.get(name) ?? [], within), name)]),
    ),
  };
}

/** The same schema for editors and other tools: with the words of the documentation and the defaults. */
export function documentedSchemaOf(type: ValueType): SchemaNode {
  if (!isOptionsClass(type)) return type;
  const defaults = documentedDefaultsOf(type);
  return classSchema(type, documentedSchemaOf, (schema, name) => ({
    ...schema,
    description: withoutLinks(optionsOf(type).get(name)?.text ?? ''),
    ...(name in defaults && { default: defaults[name] }),
  }));
}

const withoutLinks = (text: string): string => text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');

const defaultValues = new WeakMap<object, object>();

/** The defaults of a section: the initial values of its class, as a plain object. */
export function defaultsOf<T extends object>(type: OptionsClass<T>): Plain<T> {
  const known = defaultValues.get(type);
  if (known) return known as Plain<T>;
  const values = Object.entries(new type()).filter(([, value]) => value !== undefined);
  const defaults = Object.freeze(Object.fromEntries(values)) as Plain<T>;
  defaultValues.set(type, defaults);
  return defaults;
}

/** The defaults of a class, with those that are filled in elsewhere. */
export function documentedDefaultsOf(type: OptionsClass): Readonly<Record<string, unknown>> {
  const elsewhere = [...optionsOf(type)].filter(([, option]) => option.default !== undefined);
  return {
    ...defaultsOf(type),
    ...Object.fromEntries(elsewhere.map(([name, option]) => [name, option.default])),
  };
}
