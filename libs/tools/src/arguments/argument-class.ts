import {
  getMetadataStorage,
  type ValidationArguments,
  type ValidatorConstraintInterface,
} from 'class-validator';
import { refusals, Refused } from '#core';
import { suggestNames } from '#policy';
import { isClassReader } from '../declaration/class-reader.js';
import type { ToolRegistration } from '../declaration/tool.decorator.js';
import { declaredNames } from '../json-schema.js';
import type { ToolCall } from '../tool.js';
import { aliasesOf, conversionsOf, declaredSchema, givenProperty } from './argument.decorators.js';

/** The unvalidated arguments of a call. */
export type Arguments = Readonly<Record<string, unknown>>;

export function refuseArgument(message: string): never {
  throw new Refused(refusals.invalidArgument(message));
}

/** A class whose properties are the arguments of a tool, with class-validator decorators. */
export type ArgumentClass<T extends object = object> = new () => T;

/** An argument class of a tool that checks its class before its other arguments: a refusal of the class comes first. */
export interface AdmittingArguments {
  /** @throws Refused when the caller may not use the class */
  readonly admission?: (className: string, call: ToolCall) => Promise<unknown>;
}

/** `static readonly admission` of such a class: the caller must be able to read the class. */
export const admitsClass: AdmittingArguments['admission'] = (className, call) =>
  call.records.admit(className);
/** The same for vector search: the class must be searchable as well. */
export const admitsSearchedClass: AdmittingArguments['admission'] = (className, call) =>
  call.search.likeness(className);

type Metadata = ReturnType<ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']>[number];
type Condition = (args: object, value: unknown) => boolean;

interface Rule {
  readonly constraint: ValidatorConstraintInterface;
  readonly constraints: unknown[];
  readonly message: string | ((args: ValidationArguments) => string);
}

/** One property of an argument class, from its decorators. */
interface Argument {
  readonly name: string;
  /** Accepted names, the property's own name first. */
  readonly names: readonly string[];
  /** Null counts as absent. */
  readonly optional: boolean;
  readonly conversions: readonly ((value: unknown) => unknown)[];
  readonly conditions: readonly Condition[];
  readonly rules: readonly Rule[];
}

function metadataOf(type: ArgumentClass): ReadonlyMap<string, readonly Metadata[]> {
  const all = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  const groups = new Map<string, Metadata[]>();
  for (const one of all) groups.set(one.propertyName, [...(groups.get(one.propertyName) ?? []), one]);
  return groups;
}

/** The accepted argument names that the JSON Schema does not declare. */
export function undeclaredNames(type: ArgumentClass): readonly string[] {
  return [...metadataOf(type).keys()].flatMap((name) => [
    ...(declaredSchema(type, name) === null ? [name] : []),
    ...aliasesOf(type, name),
  ]);
}

/**
 * Reads arguments into an instance of the class. The metadata of the decorators is read here once instead of in every
 * call: the rules are those of class-validator, in the order of the properties, up to the first that fails. Values are
 * converted by the decorators of `argument.decorators.ts` alone; a `@Transform` beside them has no effect.
 * @returns throws Refused `invalid_argument`
 * @throws TypeError for unsupported decorators: nested classes, groups, `each`, promises
 */
export function argumentReader<T extends object>(type: ArgumentClass<T>): (given: unknown) => T {
  const properties = [...metadataOf(type)].map(([name, metadata]) => argumentOf(type, name, metadata));
  const given = givenProperty(type);
  return (written) => {
    const args = argumentsOf(written);
    const read = new type();
    const members = read as Record<string, unknown>;
    if (given !== undefined) members[given] = args;
    for (const property of properties) assign(property, args, members);
    for (const property of properties) check(property, members, type.name);
    return read;
  };
}

/** Absent arguments count as an empty object. */
function argumentsOf(written: unknown): Arguments {
  if (written === undefined || written === null) return {};
  const isObject = typeof written === 'object' && !Array.isArray(written);
  return isObject ? (written as Arguments) : refuseArgument('arguments must be an object');
}

function argumentOf(type: ArgumentClass, name: string, metadata: readonly Metadata[]): Argument {
  const conditional = metadata.filter((one) => one.type === 'conditionalValidation');
  return {
    name,
    names: [name, ...aliasesOf(type, name)],
    optional: conditional.some((one) => one.name === 'isOptional'),
    conversions: conversionsOf(type, name),
    conditions: conditional.map(({ constraints }) => constraints[0] as Condition),
    rules: metadata.filter((one) => !conditional.includes(one)).flatMap((one) => rulesOf(type, one)),
  };
}

function rulesOf(type: ArgumentClass, metadata: Metadata): Rule[] {
  const { propertyName, constraintCls, constraints, message, each, groups } = metadata;
  if (metadata.type === 'whitelistValidation') return [];
  const constraintsOf = getMetadataStorage().getTargetValidatorConstraints(constraintCls);
  if (
    metadata.type !== 'customValidation' ||
    each ||
    groups?.length > 0 ||
    constraintsOf.some((one) => one.async)
  )
    throw new TypeError(
      `${type.name}.${propertyName}: '${metadata.name ?? metadata.type}' cannot be compiled`,
    );
  return constraintsOf.map(({ instance }) => ({
    constraint: instance,
    constraints: constraints ?? [],
    message: message ?? '',
  }));
}

/** Reads only own members of the caller's object, so that unknown and inherited ones have no effect. */
function assign(
  { name, names, optional, conversions }: Argument,
  args: Arguments,
  read: Record<string, unknown>,
) {
  const written = names.length === 1 ? name : (names.find((one) => Object.hasOwn(args, one)) ?? name);
  let value = Object.hasOwn(args, written) ? args[written] : undefined;
  if (value === undefined || (value === null && optional)) return;
  for (const convert of conversions) value = convert(value);
  if (value !== undefined) read[name] = value;
}

function check(
  { name, conditions, rules }: Argument,
  read: Record<string, unknown>,
  targetName: string,
): void {
  const value = read[name];
  for (const condition of conditions) if (!condition(read, value)) return;
  for (const { constraint, constraints, message } of rules) {
    const args: ValidationArguments = { value, constraints, targetName, object: read, property: name };
    if (constraint.validate(value, args) === true) continue;
    const text = typeof message === 'string' ? message : message(args);
    refuseArgument(filledIn(text === '' ? (constraint.defaultMessage?.(args) ?? '') : text, args));
  }
}

/** Replaces the tokens in class-validator's own messages. */
function filledIn(message: string, { property, constraints }: ValidationArguments): string {
  return message
    .replaceAll('$property', property)
    .replaceAll(/\$constraint(\d+)/g, (_, at) => String(constraints[Number(at) - 1]));
}

/** Identity names are never arguments: they are ignored in every spelling. */
const IDENTITY = new Set([
  'sessiontoken',
  'master',
  'masterkey',
  'usemaster',
  'usemasterkey',
  'acluser',
  'aclrole',
  'aclscope',
  'tenantid',
]);

/** Maximum length of a name that a refusal repeats. */
const MAX_NAME = 128;

function isIdentity(name: string): boolean {
  const letters = name.toLowerCase().replaceAll(/[^a-z]/g, '');
  return IDENTITY.has(letters) || IDENTITY.has(letters.replace(/^xparse/, ''));
}

/**
 * Similar names, or else those of two words of which the written one is a word: `id` for `object_id`. A word of a longer name
 * says too little of it: `filter` is no `apply_canonical_filter`.
 */
function meant(written: string, declared: readonly string[]): readonly string[] {
  const near = suggestNames(written, declared);
  if (near.length > 0) return near;
  const word = written.toLowerCase();
  const isMeant = (words: readonly string[]) => words.length === 2 && words.includes(word);
  return declared.filter((name) => isMeant(name.split('_'))).slice(0, 3);
}

/**
 * Refuses arguments that a built-in tool does not have: an ignored typing error would change the meaning of the call.
 * @returns throws Refused `invalid_argument` with the nearest name and all valid names
 */
export function unknownArguments({
  definition: { name: tool, inputSchema },
  input,
}: Pick<ToolRegistration, 'definition' | 'input'>): (args: unknown) => void {
  const declared = declaredNames(inputSchema);
  const others = input && isClassReader(input) ? undeclaredNames(input.type) : [];
  const taken = new Set([...declared, ...others]);
  return (args) => {
    if (args === null || typeof args !== 'object') return;
    const unknown = Object.keys(args).find((name) => !taken.has(name) && !isIdentity(name));
    if (unknown === undefined) return;
    const written = unknown.slice(0, MAX_NAME);
    throw new Refused(refusals.unknownArgument(tool, written, meant(written, declared), declared));
  };
}
