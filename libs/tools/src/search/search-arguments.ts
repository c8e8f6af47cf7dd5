import { type Arguments, refuseArgument, requiredString } from '../arguments/argument-readers.js';

/** A whole number of results: zero and less mean the default, more than the most means the most. */
export function resultCount(
  args: Arguments,
  name: string,
  { fallback, most }: { readonly fallback: number; readonly most: number },
): number {
  const value = (Object.hasOwn(args, name) ? args[name] : undefined) ?? fallback;
  if (typeof value !== 'number' || !Number.isInteger(value))
    return refuseArgument(`${name} must be an integer`);
  return value <= 0 ? fallback : Math.min(value, most);
}

export function requiredText(args: Arguments, name: string): string {
  const text = requiredString(args, name);
  return text.trim() === '' ? refuseArgument(`${name} must not be blank`) : text;
}

/** A score exact enough to order by; whether one certain row exists could be read off all of its digits. */
export function toldScore(score: number, tier: string): number {
  return tier === 'admin' ? score : Math.round(score * 10) / 10;
}
