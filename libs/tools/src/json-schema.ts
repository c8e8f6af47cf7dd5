import type { JsonSchema } from '#schema';

type Properties = Readonly<Record<string, JsonSchema>>;

export const STRING: JsonSchema = { type: 'string' };
export const INTEGER: JsonSchema = { type: 'integer' };
export const BOOLEAN: JsonSchema = { type: 'boolean' };
export const OBJECT: JsonSchema = { type: 'object' };

const JSON_TYPES = ['string', 'number', 'boolean', 'object', 'array', 'null'] as const;

/** Any value. Type by type, because strict clients take neither `{}` nor a list of types. */
export const VALUE: JsonSchema = { anyOf: JSON_TYPES.map((type) => ({ type })) };

export const describeSchema = (schema: JsonSchema, description: string): JsonSchema => ({
  ...schema,
  description,
});
export const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
export const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values });

/** `required` is always present: some hosts refuse an input schema without it. */
export function objectOf(properties: Properties, required: readonly string[] = []): JsonSchema {
  return { type: 'object', properties, required };
}

export function listDeclaredNames(schema: JsonSchema): readonly string[] {
  return Object.keys((schema['properties'] ?? {}) as object);
}

/**
 * The result of reading a value: the output of the schema (defaults, transformations), or the error with its path and
 * without the value.
 */
type ReadValue =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: readonly string[] };

/** Leaves its input unchanged. */
export type ValueReader = (value: unknown) => ReadValue | Promise<ReadValue>;

/** A schema in the two forms that a tool needs: JSON Schema for clients, and a compiled validator. */
export interface SchemaReader {
  readonly jsonSchema: JsonSchema;
  /** Called once, when the tool is registered. @throws TypeError for an invalid schema */
  compile(): ValueReader;
}
