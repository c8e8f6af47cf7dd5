import { createRequire } from 'node:module';
import type * as AjvPackage from 'ajv';
import { CONFIG_SCHEMA } from './config-schema.js';

/** One place where a value does not fit: what is told of Ajv's own error object. */
interface SchemaError {
  /** JSON pointer. */
  readonly instancePath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

/** Says whether a value fits, and after a no, all that does not. */
export interface SchemaCheck {
  (value: unknown): boolean;
  readonly errors?: readonly SchemaError[] | null | undefined;
}

let compiled: SchemaCheck | undefined;

/**
 * The check of the whole configuration, compiled at first use and kept: nobody who brings the compiled one needs Ajv. The build
 * puts a module with the same check as plain code in the place of this one, since compiling it was a tenth of every start.
 */
export function configCheck(): SchemaCheck {
  if (compiled) return compiled;
  const { Ajv } = createRequire(import.meta.url)('ajv') as typeof AjvPackage;
  // That the schema is one, and strict, a test asserts.
  compiled = new Ajv({ allErrors: true, strict: false, validateSchema: false, meta: false }).compile(
    CONFIG_SCHEMA,
  ) as SchemaCheck;
  return compiled;
}
