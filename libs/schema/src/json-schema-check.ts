import { createRequire } from 'node:module';
import type * as AjvPackage from 'ajv/dist/2020.js';
import type { Ajv2020, ErrorObject } from 'ajv/dist/2020.js';
import type { JsonSchema } from './property.decorators.js';

/** What is wrong with a value, with paths and without values; empty: nothing. */
export type JsonSchemaCheck = (value: unknown) => readonly string[];

interface CheckOptions {
  /** Fills the defaults of the schema into the value. Default false. */
  readonly useDefaults?: boolean;
}

const opened = new Map<boolean, Ajv2020>();

/**
 * Compiles a schema of others: of a tool of an application, of a form that a client fills in. Ajv is loaded with the first of
 * them. MCP reads a schema without `$schema` as 2020-12; `format` is a hint and not checked.
 * @throws TypeError for what is no JSON Schema
 */
export function compileJsonSchema(
  schema: JsonSchema,
  { useDefaults = false }: CheckOptions = {},
): JsonSchemaCheck {
  try {
    const ajv = openAjv(useDefaults);
    const check = ajv.compile(schema);
    // Ajv would keep every schema, and refuse a second one with the same `$id`.
    ajv.removeSchema(schema);
    return (value) => (check(value) ? [] : (check.errors ?? []).map(describeError));
  } catch (error) {
    throw new TypeError(`is not JSON Schema: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function openAjv(useDefaults: boolean): Ajv2020 {
  const known = opened.get(useDefaults);
  if (known) return known;
  const { Ajv2020: Compiler } = createRequire(import.meta.url)('ajv/dist/2020.js') as typeof AjvPackage;
  const ajv = new Compiler({ strict: false, useDefaults, validateFormats: false });
  opened.set(useDefaults, ajv);
  return ajv;
}

function describeError({ instancePath, message, params, keyword }: ErrorObject): string {
  const place = instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~');
  const extra = (params as { additionalProperty?: unknown }).additionalProperty;
  const named = keyword === 'additionalProperties' && typeof extra === 'string' ? ` '${extra}'` : '';
  return `${place === '' ? '' : `${place}: `}${message ?? 'is not valid'}${named}`;
}
