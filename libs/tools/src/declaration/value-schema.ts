import type { SchemaReader } from '../json-schema.js';
import type { JsonSchema } from '../tool.js';
import { compileJsonSchema, type DecoratedClass } from '#schema';
import { isClass, readValidatedClass } from './class-reader.js';

/**
 * The definition of a tool's arguments or result: JSON Schema; a Standard Schema (zod, valibot, arktype, …) with a JSON
 * Schema form; or a class with class-validator decorators.
 */
export type ValueSchema = JsonSchema | StandardSchema | DecoratedClass;

/**
 * @param direction the side of a transforming schema to describe: input or output
 * @throws TypeError naming what the schema lacks
 */
export function schemaReader(schema: ValueSchema, direction: 'input' | 'output'): SchemaReader {
  if (isStandardSchema(schema)) return readStandardSchema(schema, direction);
  if (isClass(schema)) return readValidatedClass(schema);
  return readJsonSchema(schema);
}

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Validated =
  { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

interface JsonSchemaConverter {
  input(options: { readonly target: 'draft-2020-12' }): Record<string, unknown>;
  output(options: { readonly target: 'draft-2020-12' }): Record<string, unknown>;
}

/** The common interface of validation libraries (standardschema.dev), with its JSON Schema part. */
interface StandardSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): Validated | Promise<Validated>;
    /**
     * Of libraries that convert their schemas to JSON Schema (zod 4.2 or newer; valibot by `@valibot/to-json-schema`).
     */
    readonly jsonSchema?: JsonSchemaConverter;
  };
}

function isStandardSchema(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false;
  const standard = (schema as Partial<StandardSchema>)['~standard'];
  return typeof standard?.validate === 'function';
}

const toPlace = ({ path = [] }: Issue): string =>
  path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');

function issueText(issue: Issue): string {
  const place = toPlace(issue);
  return place === '' ? issue.message : `${place}: ${issue.message}`;
}

/** @throws TypeError for a schema without a JSON Schema form */
function readStandardSchema(schema: StandardSchema, direction: 'input' | 'output'): SchemaReader {
  const standard = schema['~standard'];
  return {
    jsonSchema: describeAs(standard, direction),
    compile: () => async (given) => {
      // A schema returns as they came the parts that it leaves open: the handler gets a copy, and a next round the same arguments.
      const validated = await standard.validate(direction === 'input' ? structuredClone(given) : given);
      return validated.issues
        ? { ok: false, issues: validated.issues.map(issueText) }
        : { ok: true, value: validated.value };
    },
  };
}

function describeAs(
  { jsonSchema, vendor }: StandardSchema['~standard'],
  direction: 'input' | 'output',
): JsonSchema {
  if (!jsonSchema)
    throw new TypeError(
      `is a schema of ${vendor} that cannot be told as JSON Schema (docs/guide/writing-tools.md)`,
    );
  // The protocol defines the dialect.
  const { $schema: _dialect, ...schema } = jsonSchema[direction]({ target: 'draft-2020-12' });
  return schema;
}

function readJsonSchema(jsonSchema: JsonSchema): SchemaReader {
  return {
    jsonSchema,
    compile: () => {
      const check = compileJsonSchema(jsonSchema, { useDefaults: true });
      return (given) => {
        // The check fills in defaults, so it works on a copy of the value.
        const value: unknown = structuredClone(given);
        const issues = check(value);
        return issues.length === 0 ? { ok: true, value } : { ok: false, issues };
      };
    },
  };
}
