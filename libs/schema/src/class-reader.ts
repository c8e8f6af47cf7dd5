import {
  getMetadataStorage,
  type ValidationArguments,
  type ValidatorConstraintInterface,
} from 'class-validator';
import type { DecoratedClass } from './property.decorators.js';
import {
  type Conversion,
  getAliases,
  getConversions,
  getDeclaredSchema,
  getGivenProperty,
} from './property.decorators.js';

/** An object that nobody has checked yet. */
export type Given = Readonly<Record<string, unknown>>;

type Metadata = ReturnType<ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']>[number];
type Condition = (args: object, value: unknown) => boolean;

interface Rule {
  readonly constraint: ValidatorConstraintInterface;
  readonly constraints: unknown[];
  readonly message: string | ((args: ValidationArguments) => string);
}

/** One property of a class, from its decorators. */
interface Property {
  readonly name: string;
  /** Accepted names, the property's own name first. */
  readonly names: readonly string[];
  /** Null counts as absent. */
  readonly optional: boolean;
  readonly conversions: readonly Conversion[];
  readonly conditions: readonly Condition[];
  readonly rules: readonly Rule[];
}

/**
 * Reads objects into instances of a class. The metadata of the decorators is read here once instead of for every value: the
 * rules are those of class-validator, in the order of the properties, up to the first that fails. Values are converted by
 * `@Convert` alone; a `@Transform` beside it has no effect, and members without a decorator are not read.
 * @param refuse throws; receives the message of the rule that fails
 * @throws TypeError for unsupported decorators: nested classes, groups, `each`, promises
 */
export function compileReader<T extends object>(
  type: DecoratedClass<T>,
  refuse: (message: string) => never,
): (given: Given) => T {
  const properties = [...groupMetadata(type)].map(([name, metadata]) =>
    compileProperty(type, name, metadata),
  );
  const givenProperty = getGivenProperty(type);
  return (given) => {
    const read = new type();
    const members = read as Record<string, unknown>;
    if (givenProperty !== undefined) members[givenProperty] = given;
    for (const property of properties) assign(property, given, members);
    for (const property of properties) {
      const failure = findFailure(property, members, type.name);
      if (failure !== null) refuse(failure);
    }
    return read;
  };
}

/** The names that a reader of the class accepts. */
export const listNames = (type: DecoratedClass): readonly string[] =>
  [...groupMetadata(type).keys()].flatMap((name) => [name, ...getAliases(type, name)]);

/** The names that a reader of the class accepts and that its JSON Schema does not declare. */
export function listUndeclaredNames(type: DecoratedClass): readonly string[] {
  return [...groupMetadata(type).keys()].flatMap((name) => [
    ...(getDeclaredSchema(type, name) === null ? [name] : []),
    ...getAliases(type, name),
  ]);
}

function groupMetadata(type: DecoratedClass): ReadonlyMap<string, readonly Metadata[]> {
  const all = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
  const groups = new Map<string, Metadata[]>();
  for (const one of all) groups.set(one.propertyName, [...(groups.get(one.propertyName) ?? []), one]);
  return groups;
}

function compileProperty(type: DecoratedClass, name: string, metadata: readonly Metadata[]): Property {
  const conditional = metadata.filter((one) => one.type === 'conditionalValidation');
  return {
    name,
    names: [name, ...getAliases(type, name)],
    optional: conditional.some((one) => one.name === 'isOptional'),
    conversions: getConversions(type, name),
    conditions: conditional.map(({ constraints }) => constraints[0] as Condition),
    rules: metadata.filter((one) => !conditional.includes(one)).flatMap((one) => compileRules(type, one)),
  };
}

function compileRules(type: DecoratedClass, metadata: Metadata): Rule[] {
  const { propertyName, constraintCls, constraints, message, each, groups } = metadata;
  if (metadata.type === 'whitelistValidation') return [];
  const found = getMetadataStorage().getTargetValidatorConstraints(constraintCls);
  if (metadata.type !== 'customValidation' || each || groups?.length > 0 || found.some((one) => one.async))
    throw new TypeError(
      `${type.name}.${propertyName}: '${metadata.name ?? metadata.type}' cannot be compiled`,
    );
  return found.map(({ instance }) => ({
    constraint: instance,
    constraints: constraints ?? [],
    message: message ?? '',
  }));
}

/** Reads only own members of the caller's object, so that unknown and inherited ones have no effect. */
function assign(
  { name, names, optional, conversions }: Property,
  given: Given,
  read: Record<string, unknown>,
): void {
  const written = names.length === 1 ? name : (names.find((one) => Object.hasOwn(given, one)) ?? name);
  let value = Object.hasOwn(given, written) ? given[written] : undefined;
  if (value === undefined || (value === null && optional)) return;
  for (const convert of conversions) value = convert(value);
  if (value !== undefined) read[name] = value;
}

function findFailure(
  { name, conditions, rules }: Property,
  read: Record<string, unknown>,
  targetName: string,
): string | null {
  const value = read[name];
  for (const condition of conditions) if (!condition(read, value)) return null;
  for (const { constraint, constraints, message } of rules) {
    const args: ValidationArguments = { value, constraints, targetName, object: read, property: name };
    if (constraint.validate(value, args) === true) continue;
    const text = typeof message === 'string' ? message : message(args);
    return fillIn(text === '' ? (constraint.defaultMessage?.(args) ?? '') : text, args);
  }
  return null;
}

/** Replaces the tokens in class-validator's own messages. */
function fillIn(message: string, { property, constraints }: ValidationArguments): string {
  return message
    .replaceAll('$property', property)
    .replaceAll(/\$constraint(\d+)/g, (_, at) => String(constraints[Number(at) - 1]));
}
