import { createRequire } from 'node:module';
import type { ValidationError } from 'class-validator';
import type { SchemaReader } from './value-schema.js';
import { jsonSchemaOfClass, type ValidationLibraries } from './class-json-schema.js';

/** A class whose properties carry class-validator decorators. */
export type ValidatedClass = new () => object;

export function isClass(schema: unknown): schema is ValidatedClass {
  return typeof schema === 'function';
}

const load = createRequire(import.meta.url);

/** Only an application that declares such classes has these packages, and only then are they read. */
function libraries(): ValidationLibraries {
  try {
    return {
      validator: load('class-validator') as ValidationLibraries['validator'],
      transformer: load('class-transformer') as ValidationLibraries['transformer'],
      types: load('class-transformer/cjs/storage.js') as ValidationLibraries['types'],
    };
  } catch {
    throw new TypeError('is a class: that needs the packages class-validator and class-transformer');
  }
}

/** @throws TypeError when the packages are missing, or the class has no decorated property */
export function readValidatedClass(type: ValidatedClass): SchemaReader {
  const found = libraries();
  const { validator, transformer } = found;
  return {
    jsonSchema: jsonSchemaOfClass(type, found),
    compile: () => async (given) => {
      const value = transformer.plainToInstance(type, given);
      if (typeof value !== 'object' || value === null) return { ok: false, faults: ['must be an object'] };
      const errors = await validator.validate(value, {
        whitelist: true,
        forbidNonWhitelisted: true,
        forbidUnknownValues: true,
        validationError: { target: false, value: false },
      });
      return errors.length === 0 ? { ok: true, value } : { ok: false, faults: errors.flatMap(faultsOf) };
    },
  };
}

function faultsOf({ constraints = {}, children = [] }: ValidationError): string[] {
  return [...Object.values(constraints), ...children.flatMap(faultsOf)];
}
