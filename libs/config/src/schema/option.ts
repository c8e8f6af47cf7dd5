import { ValidateIf, getMetadataStorage, IsArray, IsString, MinLength } from 'class-validator';
import { type DecoratedClass, type JsonSchema, Keywords, type SchemaNode } from '#schema';

/** A class of options: each property is one option, its initial value the default, its decorators the check. */
export type OptionsClass<T extends object = object> = DecoratedClass<T>;

/** What is loaded by a class of options: plain objects, never instances. */
export type Plain<T> = { readonly [Name in keyof T]: T[Name] };

/** What a value has to be: of a class of options, or where there is none to write, this part of JSON Schema. */
export type OptionType = OptionsClass | SchemaNode;

export const isOptionsClass = (type: OptionType): type is OptionsClass => typeof type === 'function';

interface OptionMembers {
  /** It must be given. */
  readonly required?: true;
  /** What holds where nothing is given, when the property has no initial value: it is filled in elsewhere. */
  readonly default?: unknown;
}

export interface OptionDescription extends OptionMembers {
  /** As written in the tables of docs/, links of Markdown included. */
  readonly text: string;
}

const DESCRIPTIONS = new WeakMap<object, Map<string, OptionDescription>>();

/** The options of a class in the order of their declaration, those of the class that it extends first. */
export function readOptions(type: OptionsClass): ReadonlyMap<string, OptionDescription> {
  const own = DESCRIPTIONS.get(type) ?? [];
  const base: unknown = Object.getPrototypeOf(type);
  return new Map(base === Function.prototype ? own : [...readOptions(base as OptionsClass), ...own]);
}

const isGiven = (_: unknown, value: unknown): boolean => value !== undefined;

/**
 * Makes a property an option of the configuration. class-validator has no place for the words that describe one, and its
 * `IsOptional` accepts null, which has a meaning of its own in a configuration.
 * @param text what it is, in the words of the table in docs/
 */
export function Option(text: string, members: OptionMembers = {}): PropertyDecorator {
  return (target, name) => {
    const type = target.constructor;
    const options = DESCRIPTIONS.get(type) ?? new Map<string, OptionDescription>();
    DESCRIPTIONS.set(type, options.set(String(name), { text, ...members }));
    if (members.required !== true) ValidateIf(isGiven)(target, String(name));
  };
}

/** The schema of a type; `compile` makes that of a class. */
const read = (type: OptionType, compile: (type: OptionsClass) => JsonSchema): JsonSchema =>
  isOptionsClass(type) ? compile(type) : { ...type };

/** A value of another type, mostly another class. */
export function Nested(type: OptionType): PropertyDecorator {
  return Keywords((compile) => read(type, compile));
}

export function ListOf(type: OptionType): PropertyDecorator {
  return Keywords((compile) => ({ type: 'array', items: read(type, compile) }));
}

/** An object with names of the user's choice. @param names what each of them is; default: anything */
export function MapOf(type: OptionType, names?: SchemaNode): PropertyDecorator {
  return Keywords((compile) => ({
    type: 'object',
    ...(names && { propertyNames: names }),
    additionalProperties: read(type, compile),
  }));
}

/** One of several forms, in the order in which messages list them. */
export function AnyOf(...types: readonly OptionType[]): PropertyDecorator {
  return Keywords((compile) => ({ anyOf: types.map((type) => read(type, compile)) }));
}

/** Texts of at least one character. */
export function IsTexts(): PropertyDecorator {
  return (target, name) => {
    for (const decorate of [IsArray(), IsString({ each: true }), MinLength(1, { each: true })])
      decorate(target, String(name));
  };
}

/** Text of at least one character. */
export function IsText(): PropertyDecorator {
  return (target, name) => {
    for (const decorate of [IsString(), MinLength(1)]) decorate(target, String(name));
  };
}

/** A class with some options of another, none of which has a default or is required. */
export function pickOptions<T extends object, const Name extends keyof T & string>(
  type: OptionsClass<T>,
  names: readonly Name[],
): OptionsClass<Partial<Pick<T, Name>>> {
  return copyOptions(
    names.map((name) => [name, type]),
    [],
  );
}

/** A class with the options of several, none of which has a default, for objects of which one option says the class. */
export function joinOptions(types: readonly OptionsClass[], required: readonly string[]): OptionsClass {
  const origins = new Map<string, OptionsClass>();
  for (const type of types)
    for (const name of readOptions(type).keys()) if (!origins.has(name)) origins.set(name, type);
  return copyOptions([...origins], required);
}

function copyOptions(
  origins: readonly (readonly [name: string, type: OptionsClass])[],
  required: readonly string[],
): OptionsClass {
  class Copied {}
  const storage = getMetadataStorage();
  for (const [name, type] of origins) {
    for (const rule of storage.getTargetValidationMetadatas(type, '', false, false))
      if (rule.propertyName === name && rule.constraints?.[0] !== isGiven)
        storage.addValidationMetadata(Object.assign({}, rule, { target: Copied }));
    const text = readOptions(type).get(name)?.text ?? '';
    Option(text, required.includes(name) ? { required: true } : {})(Copied.prototype, name);
  }
  return Copied;
}
