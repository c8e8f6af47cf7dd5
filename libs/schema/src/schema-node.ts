/** The part of JSON Schema that the configuration is written in, and what only errors read of it. */
export interface SchemaNode {
  readonly type?: SchemaType | readonly SchemaType[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly SchemaNode[];
  /** Everything but this; what it is instead is checked elsewhere. */
  readonly not?: SchemaNode;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly propertyNames?: SchemaNode;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: SchemaNode;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  /** What the pattern accepts, in words. */
  readonly patternWords?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  /** What is accepted, in words, where a pattern would say it. */
  readonly description?: string;
  /** Keys that belong elsewhere, and what to write instead. */
  readonly elsewhere?: Readonly<Record<string, string>>;
}

/** `function` is only accepted of options that code gives. */
export type SchemaType =
  'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object' | 'function';

/** The type that a value has; `none`: one that no option can have. */
export function typeOf(value: unknown): SchemaType | 'none' {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'object':
    case 'function':
      return typeof value as SchemaType;
    case 'number':
      return Number.isFinite(value) ? 'number' : 'none';
    default:
      return 'none';
  }
}

function typesOf({ type, const: constant, enum: values, anyOf }: SchemaNode): ReadonlySet<SchemaType> {
  if (anyOf) return new Set(anyOf.flatMap((branch) => [...typesOf(branch)]));
  if (values) return new Set(values.map((value) => typeOf(value) as SchemaType));
  if (constant !== undefined) return new Set([typeOf(constant) as SchemaType]);
  if (type === undefined) return new Set();
  return new Set(typeof type === 'string' ? [type] : type);
}

/** Whether a value has a type that the schema accepts; a schema without any accepts all. */
export function acceptsType(schema: SchemaNode, value: unknown): boolean {
  if (schema.not) return !acceptsType(schema.not, value);
  const types = typesOf(schema);
  const own = typeOf(value);
  if (types.size === 0) return true;
  if (own === 'none') return false;
  return types.has(own) || (own === 'number' && types.has('integer') && Number.isInteger(value));
}

const WORDS: Readonly<Record<SchemaType, string>> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
  function: 'a function',
};

export const inWords = (type: SchemaType | 'none'): string =>
  type === 'none' ? 'a value of another kind' : WORDS[type];

const plain = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** The values of enumerations alone, null for a schema that accepts others as well. */
export function listedValues({ enum: values, const: constant }: SchemaNode): readonly string[] | null {
  if (values) return values.map(plain);
  return constant === undefined ? null : [plain(constant)];
}

/** What a schema accepts, in words and in one line. */
export function accepts(schema: SchemaNode): string {
  const words = [...new Set(alternatives(schema))];
  const last = words.pop() ?? 'something else';
  return words.length === 0 ? last : `${words.join(', ')} or ${last}`;
}

function alternatives(schema: SchemaNode): string[] {
  if (schema.description !== undefined) return [schema.description];
  if (schema.anyOf) return schema.anyOf.flatMap(alternatives);
  const listed = listedValues(schema);
  if (listed) return [...listed];
  return [...typesOf(schema)].map((type) => inDetail(type, schema));
}

function inDetail(type: SchemaType, schema: SchemaNode): string {
  switch (type) {
    case 'object':
      return objectInWords(schema);
    case 'array':
      return schema.items ? `a list of ${accepts(schema.items)}` : 'a list';
    case 'number':
    case 'integer':
      return `${WORDS[type]}${rangeInWords(schema)}`;
    case 'string':
      return schema.patternWords ?? `${WORDS.string}${lengthInWords(schema)}`;
    default:
      return WORDS[type];
  }
}

/** Keys that are shown where an object has many. */
const SHOWN_KEYS = 8;

function objectInWords({ properties, required }: SchemaNode): string {
  const names = Object.keys(properties ?? {});
  if (names.length === 0) return 'an object';
  const shown = required?.length ? required : names;
  return shown.length > SHOWN_KEYS ? 'an object' : `{ ${shown.join(', ')} }`;
}

function rangeInWords({ minimum, maximum, exclusiveMinimum }: SchemaNode): string {
  if (exclusiveMinimum !== undefined)
    return ` above ${exclusiveMinimum}${maximum === undefined ? '' : `, at most ${maximum}`}`;
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? '' : ` of at most ${maximum}`;
}

function lengthInWords({ minLength, maxLength, pattern }: SchemaNode): string {
  if (pattern !== undefined) return ` that matches ${pattern}`;
  if (minLength !== undefined && minLength > 1) return ` of at least ${minLength} characters`;
  return maxLength === undefined ? '' : ` of at most ${maxLength} characters`;
}
