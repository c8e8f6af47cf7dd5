import { plainToInstance } from 'class-transformer';
import { validate, type ValidationError } from 'class-validator';
import { parseIsoDate } from '#policy';
import { compileClass, findUnreadDates, type DecoratedClass, type JsonSchema } from '#schema';
import type { SchemaReader } from '../json-schema.js';

/** Reads values by a class, and exposes the class itself for compiling its checks. */
export interface ClassReader extends SchemaReader {
  readonly type: DecoratedClass;
  /** The JSON Schema with the default values of properties. A property that has one is not required. */
  jsonSchemaWithDefaults(): JsonSchema;
}

export function isClass(schema: unknown): schema is DecoratedClass {
  return typeof schema === 'function';
}

export function isClassReader(reader: SchemaReader): reader is ClassReader {
  return 'type' in reader;
}

/** @throws TypeError when the class has no decorated property */
export function readValidatedClass(type: DecoratedClass): ClassReader {
  return {
    type,
    jsonSchema: compileClass(type, { designTypes: true }),
    jsonSchemaWithDefaults: () => compileClass(type, { designTypes: true, initialValues: true }),
    compile: () => async (given) => {
      const unread = findUnreadDates(type, given, isDate);
      if (unread.length > 0) return { ok: false, issues: unread };
      const value = plainToInstance(type, given);
      if (typeof value !== 'object' || value === null) return { ok: false, issues: ['must be an object'] };
      const errors = await validate(value, {
        whitelist: true,
        forbidNonWhitelisted: true,
        forbidUnknownValues: true,
        validationError: { target: false, value: false },
      });
      return errors.length === 0 ? { ok: true, value } : { ok: false, issues: errors.flatMap(listMessages) };
    },
  };
}

/** Of arguments as JSON holds them, and of results before they are JSON. */
const isDate = (value: unknown): boolean =>
  value instanceof Date || (typeof value === 'string' && parseIsoDate(value) !== null);

/** JSON has no Date: a missing one is asked for as it is written. */
function listMessages({ property, constraints = {}, children = [] }: ValidationError): string[] {
  const own = Object.values(constraints).map((text) =>
    text.replace('must be a Date instance', 'must be an ISO 8601 date'),
  );
  return [
    ...own,
    ...children.flatMap((child) => listMessages(child).map((text) => within(property, child, text))),
  ];
}

/** Messages of class-validator begin with the name of the property, or name it in the text. */
const within = (parent: string, { property }: ValidationError, text: string): string =>
  text.startsWith(property) ? `${parent}.${text}` : `${parent}: ${text}`;
