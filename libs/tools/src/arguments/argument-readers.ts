import { Refused, refusals } from '#agent';

/** A call's arguments. Only named members are ever read, so unknown and identity-shaped ones have no effect. */
export type Arguments = Readonly<Record<string, unknown>>;

export function refuseArgument(message: string): never {
  throw new Refused(refusals.invalidArgument(message));
}

const isObject = (value: unknown): value is Arguments =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** Absent arguments are none. @throws Refused `invalid_argument` for anything but an object */
export function readArguments(value: unknown): Arguments {
  if (value === undefined || value === null) return {};
  return isObject(value) ? value : refuseArgument('arguments must be an object');
}

/** An own member; null counts as absent. */
function given(args: Arguments, name: string): unknown {
  return Object.hasOwn(args, name) ? (args[name] ?? undefined) : undefined;
}

export function optionalString(args: Arguments, name: string): string | undefined {
  const value = given(args, name);
  if (value === undefined || typeof value === 'string') return value;
  return refuseArgument(`${name} must be a string`);
}

/** An empty string is a missing one. */
export function requiredString(args: Arguments, name: string): string {
  return optionalString(args, name) || refuseArgument(`${name} is required`);
}

export interface IntegerBounds {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** Above `max`: taken down to it silently, or anything out of bounds refused by naming both. Default `clamp`. */
  readonly above?: 'clamp' | 'refuse';
}

export function integer(args: Arguments, name: string, bounds: IntegerBounds): number {
  const { min, max, above = 'clamp' } = bounds;
  const value = given(args, name) ?? bounds.default;
  const within = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
  if (above === 'refuse' && !within) return refuseArgument(`${name} must be between ${min} and ${max}`);
  if (typeof value !== 'number' || !Number.isInteger(value))
    return refuseArgument(`${name} must be an integer`);
  if (value < min) return refuseArgument(`${name} must be at least ${min}`);
  return Math.min(value, max);
}

export function boolean(args: Arguments, name: string, fallback: boolean): boolean {
  const value = given(args, name) ?? fallback;
  return typeof value === 'boolean' ? value : refuseArgument(`${name} must be true or false`);
}

/** Only JSON `false` opts out of a class's standing filter: null, 0 and "false" are mistakes, not consent. */
export function canonicalFilterChoice(args: Arguments): boolean | undefined {
  if (!Object.hasOwn(args, 'apply_canonical_filter')) return undefined;
  const value = args['apply_canonical_filter'];
  if (value === undefined || typeof value === 'boolean') return value;
  return refuseArgument('apply_canonical_filter must be true or false');
}

/** Case-insensitive; answers with the spelling of `choices`. */
export function oneOf<Choice extends string>(
  args: Arguments,
  name: string,
  choices: readonly Choice[],
  fallback: Choice,
): Choice {
  const value = optionalString(args, name)?.toLowerCase() ?? fallback;
  const choice = choices.find((known) => known.toLowerCase() === value.toLowerCase());
  return choice ?? refuseArgument(`${name} must be one of ${choices.join(', ')}`);
}

export function optionalStringList(args: Arguments, name: string): readonly string[] | undefined {
  const value = given(args, name);
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((entry): entry is string => typeof entry === 'string'))
    return value;
  return refuseArgument(`${name} must be a list of strings`);
}

export function optionalObject(args: Arguments, name: string): Arguments | undefined {
  const value = given(args, name);
  return value === undefined || isObject(value) ? value : refuseArgument(`${name} must be an object`);
}
