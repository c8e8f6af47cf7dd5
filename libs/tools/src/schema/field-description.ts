import type { FieldSchema, PropertyPolicy } from '#policy';
import { hardenSchemaText, type SchemaTextOptions } from '../shaping/schema-text.js';
import { simplify } from '../shaping/simplify.js';

const TYPE_NAMES = new Map<string, string>([
  ['String', 'string'],
  ['Number', 'number'],
  ['Boolean', 'boolean'],
  ['Date', 'date/time'],
  ['Object', 'object (JSON)'],
  ['Array', 'array'],
  ['GeoPoint', 'geo location'],
  ['File', 'file'],
  ['Pointer', 'pointer (reference)'],
  ['Relation', 'relation (many-to-many)'],
  ['Bytes', 'binary data'],
  ['Polygon', 'polygon (geo shape)'],
  ['ACL', 'access control list'],
]);

/** How to constrain a pointer: agents otherwise guess at storage forms that match nothing. */
function pointerHint(field: string, target: string): string {
  return (
    `Pointer to ${target}. Equality: {"${field}":"<objectId>"} or ` +
    `{"${field}":{"__type":"Pointer","className":"${target}","objectId":"<objectId>"}}. ` +
    `$in/$nin: {"${field}":{"$in":["<objectId>"]}} with bare objectIds.`
  );
}

/** A default worth telling. One that names a class is not: the class may be out of the agent's sight. */
function defaultOf({ defaultValue }: FieldSchema): unknown {
  if (defaultValue === undefined || defaultValue === null || defaultValue === '') return undefined;
  return JSON.stringify(defaultValue).includes('"className"') ? undefined : simplify(defaultValue);
}

function allowedValues(property: PropertyPolicy | undefined, text: SchemaTextOptions) {
  return [...(property?.enum ?? [])].map(([value, description]) => ({
    value,
    description: hardenSchemaText(description, text),
  }));
}

export interface FieldContext {
  /** By wire name. */
  readonly properties: ReadonlyMap<string, PropertyPolicy>;
  readonly largeFields: readonly string[];
  /** Classes the agent may know; any other target is told as a reference to something unnamed. */
  readonly knownClasses: ReadonlySet<string>;
  readonly text: SchemaTextOptions;
}

/** One entry of get_schema's `fields`. */
export function describeField(name: string, schema: FieldSchema, context: FieldContext) {
  const { type, targetClass, required = false } = schema;
  const isReference = type === 'Pointer' || type === 'Relation';
  const target = targetClass !== undefined && context.knownClasses.has(targetClass) ? targetClass : null;
  const typeName = TYPE_NAMES.get(type) ?? type.toLowerCase();
  const property = context.properties.get(name);
  const values = allowedValues(property, context.text);
  const initial = defaultOf(schema);
  return {
    name,
    type: isReference && target !== null ? `${typeName} → ${target}` : typeName,
    required,
    ...(initial !== undefined && { default: initial }),
    ...(property?.description && { description: hardenSchemaText(property.description, context.text) }),
    ...(values.length > 0 && { allowed_values: values }),
    ...(!isReference && context.largeFields.includes(name) && { large_field: true }),
    ...(isReference && target !== null && { target_class: target }),
    ...(type === 'Pointer' && { query_hint: pointerHint(name, target ?? '<targetClass>') }),
  };
}
