import { createRequire } from 'node:module';
import type * as ClassValidator from 'class-validator';
import { isSection, type SchemaNode } from './schema-node.js';
import { schemaErrors } from './schema-errors.js';

const load = createRequire(import.meta.url);

/** One file of class-validator. Its index loads every validator and tables of phone numbers: 100 ms of every start. */
const part = (path: string) => load(`class-validator/cjs/${path}.js`) as typeof ClassValidator;

export const { getMetadataStorage } = part('metadata/MetadataStorage');
const { Validator } = part('validation/Validator');
const { ValidateBy } = part('decorator/common/ValidateBy');
const { ValidateIf } = part('decorator/common/ValidateIf');

export const { Allow } = part('decorator/common/Allow');
export const { Equals } = part('decorator/common/Equals');
export const { IsIn } = part('decorator/common/IsIn');
export const { IsArray } = part('decorator/typechecker/IsArray');
export const { IsBoolean } = part('decorator/typechecker/IsBoolean');
export const { IsInt } = part('decorator/typechecker/IsInt');
export const { IsNumber } = part('decorator/typechecker/IsNumber');
export const { IsObject } = part('decorator/typechecker/IsObject');
export const { IsString } = part('decorator/typechecker/IsString');
export const { IsPositive } = part('decorator/number/IsPositive');
export const { Max } = part('decorator/number/Max');
export const { Min } = part('decorator/number/Min');
export const { Matches } = part('decorator/string/Matches');
export const { MinLength } = part('decorator/string/MinLength');
export const { ArrayMaxSize } = part('decorator/array/ArrayMaxSize');
export const { ArrayMinSize } = part('decorator/array/ArrayMinSize');
export const { ArrayUnique } = part('decorator/array/ArrayUnique');

/** A class of options: each property is one option, its initial value the default, its decorators the check. */
export type OptionsClass<T extends object = object> = new () => T;

/** What is loaded by a class of options: plain objects, never instances. */
export type Plain<T> = { readonly [Name in keyof T]: T[Name] };

/** What a value has to be: of a class of options, or where there is none to write, this part of JSON Schema. */
export type ValueType = OptionsClass | SchemaNode;

export const isOptionsClass = (type: ValueType): type is OptionsClass => typeof type === 'function';

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
export function optionsOf(type: OptionsClass): ReadonlyMap<string, OptionDescription> {
  const own = DESCRIPTIONS.get(type) ?? [];
  const base: unknown = Object.getPrototypeOf(type);
  return new Map(base === Function.prototype ? own : [...optionsOf(base as OptionsClass), ...own]);
}

/** Conditions of class-validator under which the checks of an option are left out. */
const isGiven = (_: unknown, value: unknown): boolean => value !== undefined;
export const isNotNull = (_: unknown, value: unknown): boolean => value !== null;

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

/** An option that may be null. */
export function Nullable(): PropertyDecorator {
  return (target, name) => ValidateIf(isNotNull)(target, String(name));
}

/** A check of our own under a name by which the schema of the class is read. @param constraints what the schema is made of */
function check(
  name: string,
  constraints: readonly unknown[],
  validate: (value: unknown) => boolean,
): PropertyDecorator {
  return ValidateBy({
    name,
    constraints: [...constraints],
    validator: { validate, defaultMessage: () => `$property must be ${name}` },
  });
}

const fitsType = (type: ValueType, value: unknown): boolean =>
  isOptionsClass(type) ? findMisfits(type, value).length === 0 : schemaErrors(type, value).length === 0;

export const NESTED = 'an object of options';
/** A value of another type, mostly another class. `ValidateNested` takes instances; what is read from a file is plain. */
export function Nested(type: ValueType): PropertyDecorator {
  return check(NESTED, [type], (value) => fitsType(type, value));
}

export const LIST_OF = 'a list of options';
export function ListOf(type: ValueType): PropertyDecorator {
  return check(LIST_OF, [type], (value) => Array.isArray(value) && value.every((one) => fitsType(type, one)));
}

export const MAP_OF = 'an object by name';
/** An object with names of the user's choice. @param names what each of them is; default: anything */
export function MapOf(type: ValueType, names?: SchemaNode): PropertyDecorator {
  return check(
    MAP_OF,
    [type, names],
    (value) =>
      isSection(value) &&
      Object.entries(value).every(
        ([name, one]) =>
          (names === undefined || schemaErrors(names, name).length === 0) && fitsType(type, one),
      ),
  );
}

export const ANY_OF = 'one of several forms';
/** One of several forms, in the order in which messages list them. */
export function AnyOf(...types: readonly ValueType[]): PropertyDecorator {
  return check(ANY_OF, types, (value) => types.some((type) => fitsType(type, value)));
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
  return copiedOptions(
    names.map((name) => [name, type]),
    [],
  );
}

/** A class with the options of several, none of which has a default, for objects of which one option says the class. */
export function joinOptions(types: readonly OptionsClass[], required: readonly string[]): OptionsClass {
  const origins = new Map<string, OptionsClass>();
  for (const type of types)
    for (const name of optionsOf(type).keys()) if (!origins.has(name)) origins.set(name, type);
  return copiedOptions([...origins], required);
}

function copiedOptions(
  origins: readonly (readonly [name: string, type: OptionsClass])[],
  required: readonly string[],
): OptionsClass {
  class Copied {}
  const storage = getMetadataStorage();
  for (const [name, type] of origins) {
    for (const rule of storage.getTargetValidationMetadatas(type, '', false, false))
      if (rule.propertyName === name && rule.constraints?.[0] !== isGiven)
        storage.addValidationMetadata(Object.assign({}, rule, { target: Copied }));
    const text = optionsOf(type).get(name)?.text ?? '';
    Option(text, required.includes(name) ? { required: true } : {})(Copied.prototype, name);
  }
  return Copied;
}

const validator = new Validator();

/** The options of a value that class-validator does not accept; '' where the value is no object. */
export function findMisfits(type: OptionsClass, value: unknown): readonly string[] {
  if (!isSection(value)) return [''];
  const options = optionsOf(type);
  const unknown = Object.keys(value).filter((name) => !options.has(name));
  if (unknown.length > 0) return unknown;
  const given = Object.entries(value).filter(([, one]) => one !== undefined);
  const instance = Object.assign(new type(), Object.fromEntries(given));
  return validator.validateSync(instance).map(({ property }) => property);
}
