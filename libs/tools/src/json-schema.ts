import type { JsonSchema } from './tool.js';

type Properties = Readonly<Record<string, JsonSchema>>;

export const STRING: JsonSchema = { type: 'string' };
export const INTEGER: JsonSchema = { type: 'integer' };
export const BOOLEAN: JsonSchema = { type: 'boolean' };
export const OBJECT: JsonSchema = { type: 'object' };

export const described = (schema: JsonSchema, description: string): JsonSchema => ({
  ...schema,
  description,
});
export const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
export const mapOf = (values: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties: values });

/** `required` is always present: some hosts refuse an input schema without it. */
export function objectOf(properties: Properties, required: readonly string[] = []): JsonSchema {
  return { type: 'object', properties, required };
}

/** The members that a schema of an object declares. */
export function declaredNames(schema: JsonSchema): readonly string[] {
  return Object.keys((schema['properties'] ?? {}) as object);
}

/** What came of a value: as the schema reads it (defaults, transformations), or what is wrong, place first, no value in it. */
type ReadValue =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly faults: readonly string[] };

/** Leaves the value it is given unchanged. */
export type ValueReader = (value: unknown) => ReadValue | Promise<ReadValue>;

/** A schema in the two forms that a tool needs: told to clients, and run. */
export interface SchemaReader {
  readonly jsonSchema: JsonSchema;
  /** Once, when the tool is registered: never during a call. @throws TypeError when it is no schema */
  compile(): ValueReader;
}
