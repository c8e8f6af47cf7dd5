import type { JsonSchema } from '../../tool.js';
import type { SchemaReader } from './value-schema.js';

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
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): Validated | Promise<Validated>;
    /** Of libraries that can tell their schemas as JSON Schema (zod 4.2 or newer; valibot by `@valibot/to-json-schema`). */
    readonly jsonSchema?: JsonSchemaConverter;
  };
}

export function isStandardSchema(schema: unknown): schema is StandardSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false;
  const standard = (schema as Partial<StandardSchema>)['~standard'];
  return typeof standard?.validate === 'function';
}

const placeOf = ({ path = [] }: Issue): string =>
  path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');

function faultOf(issue: Issue): string {
  const place = placeOf(issue);
  return place === '' ? issue.message : `${place}: ${issue.message}`;
}

/** @throws TypeError for a schema that cannot be told to clients */
export function readStandardSchema(schema: StandardSchema, direction: 'input' | 'output'): SchemaReader {
  const standard = schema['~standard'];
  return {
    jsonSchema: toldAs(standard, direction),
    compile: () => async (given) => {
      const validated = await standard.validate(given);
      return validated.issues
        ? { ok: false, faults: validated.issues.map(faultOf) }
        : { ok: true, value: validated.value };
    },
  };
}

function toldAs(
  { jsonSchema, vendor }: StandardSchema['~standard'],
  direction: 'input' | 'output',
): JsonSchema {
  if (!jsonSchema)
    throw new TypeError(
      `is a schema of ${vendor} that cannot be told as JSON Schema (docs/writing-tools.md)`,
    );
  // The dialect is the protocol's own.
  const { $schema: _dialect, ...told } = jsonSchema[direction]({ target: 'draft-2020-12' });
  return told;
}
