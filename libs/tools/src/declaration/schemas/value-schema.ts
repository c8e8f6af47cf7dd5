import type { JsonSchema } from '../../tool.js';
import { readJsonSchema } from './json-schema.js';
import { isStandardSchema, readStandardSchema, type StandardSchema } from './standard-schema.js';
import { isClass, readValidatedClass, type ValidatedClass } from './validated-class.js';

/**
 * The shape of a tool's arguments or result: JSON Schema; a Standard Schema (zod, valibot, arktype, …) that can also be told
 * as JSON Schema; or a class with class-validator decorators.
 */
export type ValueSchema = JsonSchema | StandardSchema | ValidatedClass;

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

/**
 * @param direction which side of a schema that transforms is told: what goes in, or what comes out
 * @throws TypeError saying what the schema lacks
 */
export function schemaReader(schema: ValueSchema, direction: 'input' | 'output'): SchemaReader {
  if (isStandardSchema(schema)) return readStandardSchema(schema, direction);
  if (isClass(schema)) return readValidatedClass(schema);
  return readJsonSchema(schema);
}
