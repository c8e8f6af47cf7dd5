import { isDeepStrictEqual } from 'node:util';
import { accepts, acceptsType, inWords, listedValues, type SchemaNode, typeOf } from './schema-node.js';

/** One mistake in a value, at the place where it was made. */
export interface SchemaFinding {
  readonly path: readonly string[];
  readonly message: string;
  /** The keys, or values, that are accepted there. */
  readonly accepted?: readonly string[];
  /** The one of them that was most likely meant. */
  readonly suggestion?: string;
  /** Of a key that is missing: the object that cannot be read without it. */
  readonly missing?: true;
}

type Path = readonly string[];
type PlainObject = Readonly<Record<string, unknown>>;

/** Where a text would do without what surrounds it, as the line break at the end of a file. */
function describeBlanks(schema: SchemaNode, value: unknown): string {
  if (typeof value !== 'string' || value.trim() === value) return '';
  const isAccepted = schemaErrors(schema, value.trim()).length === 0;
  return isAccepted ? ', without the blanks or line breaks at its beginning or end' : '';
}

/**
 * Every mistake in a value: one finding for each, also where the schema has alternatives. Nothing of the value is repeated
 * but names of keys.
 */
export function schemaErrors(schema: SchemaNode, value: unknown, path: Path = []): SchemaFinding[] {
  if (schema.anyOf) return unionErrors(schema, schema.anyOf, value, path);
  const listed = listedValues(schema);
  if (listed) {
    const values: readonly unknown[] = schema.enum ?? [schema.const];
    if (values.some((one) => isDeepStrictEqual(one, value))) return [];
    const message = listed.length === 1 ? `must be ${listed[0]}` : `must be one of ${listed.join(', ')}`;
    return [{ path, message, accepted: listed }];
  }
  if (!acceptsType(schema, value)) return [wrongType(schema, value, path)];
  if (schema.not) return [];
  if (Array.isArray(value)) return arrayErrors(schema, value, path);
  if (typeof value === 'object' && value !== null) return objectErrors(schema, value as PlainObject, path);
  if (isInBounds(schema, value)) return [];
  return [{ path, message: `must be ${accepts(schema)}${describeBlanks(schema, value)}` }];
}

function wrongType(schema: SchemaNode, value: unknown, path: Path): SchemaFinding {
  const own = typeOf(value);
  const got = own === 'number' ? '' : `, not ${inWords(own)}`;
  // The keys that an object needs are listed once there is an object.
  const isObject = schema.anyOf === undefined && schema.type === 'object' && schema.description === undefined;
  return { path, message: `must be ${isObject ? inWords('object') : accepts(schema)}${got}` };
}

function isInBounds(schema: SchemaNode, value: unknown): boolean {
  if (typeof value === 'string') {
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = schema;
    const { length } = [...value];
    if (length < minLength || length > maxLength) return false;
    return pattern === undefined || new RegExp(pattern, 'u').test(value);
  }
  if (typeof value !== 'number') return true;
  const { minimum, maximum, exclusiveMinimum } = schema;
  return (
    (minimum === undefined || value >= minimum) &&
    (maximum === undefined || value <= maximum) &&
    (exclusiveMinimum === undefined || value > exclusiveMinimum)
  );
}

function arrayErrors(schema: SchemaNode, value: readonly unknown[], path: Path): SchemaFinding[] {
  const { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY, uniqueItems = false } = schema;
  if (value.length < minItems || value.length > maxItems) {
    const most = maxItems === Number.POSITIVE_INFINITY ? '' : `, and at most ${maxItems}`;
    return [{ path, message: `must have at least ${minItems} entries${most}` }];
  }
  const found = items
    ? Array.from(value).flatMap((entry, index) => schemaErrors(items, entry, [...path, String(index)]))
    : [];
  const twice = uniqueItems
    ? value.findIndex((entry, index) => value.slice(0, index).some((one) => isDeepStrictEqual(one, entry)))
    : -1;
  return twice < 0
    ? found
    : [...found, { path: [...path, String(twice)], message: 'is in the list already' }];
}

/** What would be read through a prototype, no check of keys would see. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function objectErrors(schema: SchemaNode, value: PlainObject, path: Path): SchemaFinding[] {
  const { properties = {}, additionalProperties = true, propertyNames, required = [] } = schema;
  if (schema.properties === undefined && typeof additionalProperties === 'boolean') return [];
  if (!isPlain(value))
    return [{ path, message: 'must be a plain object: write { ...options } of another one' }];
  const keys = Object.keys(value);
  const count = countError(schema, keys.length, path);
  if (count) return [count];
  const accepted = Object.keys(properties);
  const found: SchemaFinding[] = [];
  const suggested = new Set<string>();
  let unknown = 0;
  for (const key of keys) {
    const at = [...path, key];
    const own = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (own) {
      if (value[key] !== undefined) found.push(...schemaErrors(own, value[key], at));
      continue;
    }
    if (additionalProperties === false) {
      const finding = unknownKey(key, accepted, schema, path);
      if (finding.suggestion !== undefined) suggested.add(finding.suggestion);
      unknown += 1;
      found.push(finding);
      continue;
    }
    if (propertyNames && schemaErrors(propertyNames, key).length > 0)
      found.push({ path: at, message: `cannot be the name here: it must be ${accepts(propertyNames)}` });
    else if (typeof additionalProperties === 'object')
      found.push(...schemaErrors(additionalProperties, value[key], at));
  }
  const missing = required.filter((key) => value[key] === undefined && !suggested.has(key));
  // A key that is written in another way is not missing as well.
  if (missing.length <= unknown - suggested.size) return found;
  return [...found, ...missing.map((key): SchemaFinding => missingKey(key, properties, path))];
}

function missingKey(
  key: string,
  properties: Readonly<Record<string, SchemaNode>>,
  path: Path,
): SchemaFinding {
  const schema = properties[key];
  return { path: [...path, key], message: `is needed${schema ? `: ${accepts(schema)}` : ''}`, missing: true };
}

function countError(
  { minProperties, maxProperties }: SchemaNode,
  count: number,
  path: Path,
): SchemaFinding | null {
  const tooFew = minProperties !== undefined && count < minProperties;
  const tooMany = maxProperties !== undefined && count > maxProperties;
  if (!tooFew && !tooMany) return null;
  const wanted =
    minProperties === maxProperties
      ? `exactly ${minProperties}`
      : tooFew
        ? `at least ${minProperties}`
        : `at most ${maxProperties}`;
  return { path, message: `must have ${wanted} ${wanted === 'exactly 1' ? 'key' : 'keys'}` };
}

function unknownKey(key: string, accepted: readonly string[], schema: SchemaNode, path: Path): SchemaFinding {
  const { elsewhere = {} } = schema;
  const at = [...path, key];
  if (Object.hasOwn(elsewhere, key)) return { path: at, message: `unknown key: ${elsewhere[key]}`, accepted };
  const near = nearKey(key, accepted);
  const meant = near === null ? '' : `; did you mean '${near}'?`;
  const message = `unknown key${meant}${meant === '' ? '; ' : ' '}accepted: ${accepted.join(', ')}`;
  return { path: at, message, accepted, ...(near !== null && { suggestion: near }) };
}

function unionErrors(
  schema: SchemaNode,
  branches: readonly SchemaNode[],
  value: unknown,
  path: Path,
): SchemaFinding[] {
  if (branches.some((branch) => schemaErrors(branch, value, path).length === 0)) return [];
  const alike = branches.filter((branch) => acceptsType(branch, value));
  const objects = alike.filter((branch) => branch.properties !== undefined);
  if (objects.length > 0 && typeOf(value) === 'object') {
    if (!isPlain(value as object))
      return [{ path, message: 'must be a plain object: write { ...options } of another one' }];
    return variantErrors(objects, value as PlainObject, path);
  }
  const [only, ...others] = alike;
  if (only && others.length === 0 && typeof value === 'object') return schemaErrors(only, value, path);
  if (alike.length > 0)
    return [{ path, message: `must be ${accepts(schema)}${describeBlanks(schema, value)}` }];
  return [wrongType(schema, value, path)];
}

/** Objects of several kinds, each with a required key that no other kind has. */
function variantErrors(variants: readonly SchemaNode[], value: PlainObject, path: Path): SchemaFinding[] {
  const keys = Object.keys(value).filter((key) => value[key] !== undefined);
  const kinds = [...new Set(variants.flatMap(({ required = [] }) => [...required]))];
  const given = kinds.filter((key) => keys.includes(key));
  if (given.length > 1) {
    const message = `${given.join(', ')} are mutually exclusive: give one of ${kinds.join(', ')}`;
    return [{ path, message, accepted: kinds }];
  }
  const all = Object.assign({}, ...variants.map(({ properties }) => properties)) as Record<
    string,
    SchemaNode
  >;
  const kind = given[0];
  const chosen = variants.find(({ required = [] }) =>
    kind === undefined ? required.length === 0 : required.includes(kind),
  );
  const foreign = keys.filter((key) => !Object.hasOwn(chosen?.properties ?? {}, key));
  if (chosen && kind !== undefined) {
    const beside = foreign.filter((key) => Object.hasOwn(all, key));
    const rest = Object.fromEntries(Object.entries(value).filter(([key]) => !beside.includes(key)));
    return [
      ...schemaErrors(chosen, rest, path),
      ...beside.map((key) => ({ path: [...path, key], message: `cannot be combined with '${kind}'` })),
    ];
  }
  const strange = keys.filter((key) => !Object.hasOwn(all, key));
  if (strange.length > 0) {
    const known = Object.fromEntries(Object.entries(value).filter(([key]) => !strange.includes(key)));
    const others = chosen && Object.keys(known).length > 0 ? schemaErrors(chosen, known, path) : [];
    return [...strange.map((key) => unknownKey(key, Object.keys(all), {}, path)), ...others];
  }
  if (chosen) return schemaErrors(chosen, value, path);
  return [{ path, message: `needs one of ${kinds.join(', ')}`, accepted: kinds }];
}

/** Edits between two names; letters that changed places count as one. */
function edits(left: string, right: string): number {
  const [a, b] = [left.toLowerCase(), right.toLowerCase()];
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (rows[i - 1]?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min((rows[i - 1]?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, substitution);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (rows[i - 2]?.[j - 2] ?? 0) + 1);
      row.push(least);
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? Number.POSITIVE_INFINITY;
}

/** Longer names are not compared: nothing that is accepted is that long. */
const MAX_KEY_LENGTH = 64;

/** The accepted name that was most likely meant; null where none is near. */
export function nearKey(written: string, accepted: readonly string[]): string | null {
  if (written.length > MAX_KEY_LENGTH) return null;
  const limit = written.length <= 3 ? 1 : Math.max(2, Math.floor(written.length / 3));
  const [nearest] = accepted
    .map((name) => ({ name, distance: edits(written, name) }))
    .filter(({ distance }) => distance <= limit)
    .sort((one, other) => one.distance - other.distance || (one.name < other.name ? -1 : 1));
  return nearest?.name ?? null;
}
