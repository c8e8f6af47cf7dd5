import { canonicalClassName } from '#agent';
import { isPlainObject } from '../model/plain-object.js';

/** `Class$id`, as pointer columns are stored. */
export const STORED_POINTER = /^([A-Za-z_][A-Za-z0-9_]*)\$(.+)$/s;

/**
 * The classes withheld from an agent, as a database can be asked for them: those of the list, or every name but those of the
 * list. The same answer as the class gate of redaction gives, spelled out.
 */
export interface WithheldNames {
  readonly kind: 'listed' | 'allBut';
  /** In every spelling: `_User` and `User` are one class. */
  readonly classes: readonly string[];
}

/** @param known every class name that a rule of the agent or of the operator speaks of, and those of the schema */
export function withheldNames(
  known: Iterable<string>,
  isWithheld: (className: string) => boolean,
  othersAreWithheld: boolean,
): WithheldNames {
  const names = [...new Set([...known].map(canonicalClassName))];
  const chosen = names.filter((name) => isWithheld(name) !== othersAreWithheld);
  return { kind: othersAreWithheld ? 'allBut' : 'listed', classes: chosen.flatMap(spellings).toSorted() };
}

function spellings(name: string): readonly string[] {
  const bare = name.slice(1);
  return name.startsWith('_') && canonicalClassName(bare) === name ? [name, bare] : [name];
}

function isNamed(className: string, { kind, classes }: WithheldNames): boolean {
  return classes.includes(className) === (kind === 'listed');
}

/** The first withheld class that a value names: by a pointer, an object or a stored pointer, at any depth. */
export function withheldClassIn(value: unknown, names: WithheldNames): string | null {
  if (typeof value === 'string') {
    const className = STORED_POINTER.exec(value)?.[1];
    return className !== undefined && isNamed(className, names) ? className : null;
  }
  if (Array.isArray(value)) return firstOf(value, names);
  if (!isPlainObject(value)) return null;
  const { className } = value;
  if (typeof className === 'string' && isNamed(className, names)) return className;
  return firstOf([...Object.values(value), ...Object.keys(value)], names);
}

function firstOf(values: readonly unknown[], names: WithheldNames): string | null {
  for (const value of values) {
    const found = withheldClassIn(value, names);
    if (found !== null) return found;
  }
  return null;
}

/** Conditions that a path to an object of a withheld class, or to its stored pointer, meets. */
export function meetsWithheld(path: string, names: WithheldNames): readonly Record<string, unknown>[] {
  const { kind, classes } = names;
  const className =
    kind === 'listed' ? { $in: classes } : { $regex: `^(?!(?:${alternatives(classes)})(?![\\s\\S]))` };
  return [{ [`${path}.className`]: className }, { [path]: { $regex: storedPointerPattern(names) } }];
}

/** A pattern of the texts that are stored pointers into withheld classes. */
function storedPointerPattern({ kind, classes }: WithheldNames): string {
  const named = `(?:${alternatives(classes)})\\$`;
  return kind === 'listed' ? `^${named}[\\s\\S]` : `^(?!${named})[A-Za-z_][A-Za-z0-9_]*\\$[\\s\\S]`;
}

/** Of no class at all, a pattern that nothing meets. */
function alternatives(classes: readonly string[]): string {
  return classes.length === 0 ? '(?!)' : classes.map((name) => name.replaceAll(/\W/g, '\\$&')).join('|');
}

/** An expression: whether the class name is one of a withheld class. */
export function isWithheldName(className: string, { kind, classes }: WithheldNames): unknown {
  const listed = { $in: [className, { $literal: classes }] };
  return kind === 'listed'
    ? listed
    : { $and: [{ $eq: [{ $type: className }, 'string'] }, { $not: [listed] }] };
}

/** An expression: whether the value is the text of a stored pointer into a withheld class. */
export function isWithheldText(value: string, names: WithheldNames): unknown {
  const matches = { $regexMatch: { input: value, regex: storedPointerPattern(names) } };
  return { $cond: [{ $eq: [{ $type: value }, 'string'] }, matches, false] };
}
