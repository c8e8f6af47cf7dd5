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
