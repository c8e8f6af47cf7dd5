import 'reflect-metadata';
import { Transform } from 'class-transformer';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A class whose properties carry class-validator decorators. */
export type DecoratedClass<T extends object = object> = new () => T;

const SCHEMA = Symbol('parley:argument-schema');
const ALIASES = Symbol('parley:argument-aliases');
const GIVEN = Symbol('parley:arguments-as-given');
const CONVERSIONS = Symbol('parley:argument-conversions');

/**
 * Extends the JSON Schema of one property of an argument class beyond its class-validator decorators: a description,
 * examples, a narrower type. Stores metadata and checks nothing.
 */
export function ArgumentSchema(schema: JsonSchema): PropertyDecorator {
  return (prototype, name) => {
    const declared = Reflect.getOwnMetadata(SCHEMA, prototype, name) as JsonSchema | null | undefined;
    if (declared !== null) Reflect.defineMetadata(SCHEMA, { ...declared, ...schema }, prototype, name);
  };
}

/** The argument is read when it is given, and is missing from the JSON Schema. */
export function Undeclared(): PropertyDecorator {
  return (prototype, name) => Reflect.defineMetadata(SCHEMA, null, prototype, name);
}

/** @returns undefined without `@ArgumentSchema`; null for an `@Undeclared` property */
export function getDeclaredSchema(type: DecoratedClass, name: string) {
  return Reflect.getMetadata(SCHEMA, type.prototype as object, name) as JsonSchema | null | undefined;
}

/** Other names of a property, which the JSON Schema does not declare. The first given name counts. */
export function Alias(...names: readonly string[]): PropertyDecorator {
  return (prototype, name) => Reflect.defineMetadata(ALIASES, names, prototype, name);
}

export function getAliases(type: DecoratedClass, name: string): readonly string[] {
  const names: unknown = Reflect.getMetadata(ALIASES, type.prototype as object, name);
  return (names as readonly string[] | undefined) ?? [];
}

/** The property with everything as the caller sent it. */
export function AsGiven(): PropertyDecorator {
  return (prototype, name) => Reflect.defineMetadata(GIVEN, name, prototype);
}

export function getGivenProperty(type: DecoratedClass): string | undefined {
  return Reflect.getMetadata(GIVEN, type.prototype as object) as string | undefined;
}

/** Changes a value before its checks. @param convert undefined: counts as missing */
export type Conversion = (value: unknown) => unknown;

/** Converts a value like `@Transform` of class-transformer, and lets `compileReader` find the function. */
export function Convert(convert: Conversion): PropertyDecorator {
  const transform = Transform(({ value }) => convert(value));
  return (prototype, name) => {
    transform(prototype, name);
    const others = (Reflect.getOwnMetadata(CONVERSIONS, prototype, name) as Conversion[] | undefined) ?? [];
    Reflect.defineMetadata(CONVERSIONS, [...others, convert], prototype, name);
  };
}

/** The conversions of a property in the order in which class-transformer applies them. */
export function getConversions(type: DecoratedClass, name: string): readonly Conversion[] {
  const conversions: unknown = Reflect.getMetadata(CONVERSIONS, type.prototype as object, name);
  return (conversions as readonly Conversion[] | undefined) ?? [];
}
