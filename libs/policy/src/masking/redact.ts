import { canonicalClassName } from '#agent';
import { isInternalField } from '../model/field-names.js';
import { isPlainObject } from '../model/where.js';

/** Deeper nesting than Parse can store; what lies below is dropped rather than passed unseen. */
const MAX_REDACTED_DEPTH = 64;

export interface Withheld {
  readonly className: string;
  readonly __redacted: true;
}

/**
 * Last pass over every row that leaves the store, in every posture: objects and stored pointers of withheld classes
 * become a placeholder, internal columns vanish at any depth, ACL maps are not content.
 * @param isWithheld whether the class is hidden from, or filtered for, this agent
 */
export function redact(value: unknown, isWithheld: (className: string) => boolean): unknown {
  return redacted(value, isWithheld, 0);
}

/** Whether a value that leaves the store would have a placeholder in it, or in its own place. */
export function holdsWithheld(value: unknown, isWithheld: (className: string) => boolean): boolean {
  if (typeof value === 'string') return withheldPointer(value, isWithheld) !== null;
  if (value === null || typeof value !== 'object' || value instanceof Date) return false;
  const { className } = value as { className?: unknown };
  if (!Array.isArray(value) && typeof className === 'string' && isWithheld(className)) return true;
  return Object.entries(value).some(
    ([key, member]) => holdsWithheld(key, isWithheld) || holdsWithheld(member, isWithheld),
  );
}

function placeholder(className: string): Withheld {
  return { className, __redacted: true };
}

function withheldPointer(text: string, isWithheld: (className: string) => boolean): string | null {
  if (!text.includes('$')) return null;
  const className = STORED_POINTER.exec(text)?.[1];
  return className !== undefined && isWithheld(className) ? className : null;
}

function redacted(value: unknown, isWithheld: (className: string) => boolean, depth: number): unknown {
  if (typeof value === 'string') {
    const className = withheldPointer(value, isWithheld);
    return className === null ? value : placeholder(className);
  }
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (depth >= MAX_REDACTED_DEPTH) return null;
  if (Array.isArray(value)) return value.map((entry) => redacted(entry, isWithheld, depth + 1));
  const className = (value as { className?: unknown }).className;
  if (typeof className === 'string' && isWithheld(className)) return placeholder(className);
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (isInternalField(key) || key === 'ACL') continue;
    if (withheldPointer(key, isWithheld) !== null) continue;
    // `__proto__` arriving as data must stay a plain member.
    if (key === '__proto__')
      Object.defineProperty(kept, key, { value: redacted(member, isWithheld, depth + 1), enumerable: true });
    else kept[key] = redacted(member, isWithheld, depth + 1);
  }
  return kept;
}

/** Objects nested deeper than this are not looked into, and so not readablePart. */
const MAX_EMBEDDED_DEPTH = 32;

/**
 * Rows that stand inside another row with rights of their own (`_rperm`) which leave the caller out: a list loses them,
 * a field becomes null. Rights in a form nobody could read leave everybody out. The row itself is not judged again.
 */
export function withholdUnreadable(
  row: Readonly<Record<string, unknown>>,
  principals: readonly string[],
  onMalformed: OnMalformed = () => undefined,
): Record<string, unknown> {
  return readableMembers(row, { principals: new Set(principals), onMalformed }, 0);
}

/** Hears of rights in a form nobody could read, by the type of what stands there. */
export type OnMalformed = (type: string) => void;

interface Reader {
  readonly principals: ReadonlySet<string>;
  readonly onMalformed: OnMalformed;
}

const WITHHELD = Symbol('withheld');

function readableMembers(
  object: Readonly<Record<string, unknown>>,
  reader: Reader,
  depth: number,
): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(object)) {
    const value = key === '_rperm' ? member : readablePart(member, reader, depth + 1);
    Object.defineProperty(kept, key, {
      value: value === WITHHELD ? null : value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return kept;
}

function readablePart(value: unknown, reader: Reader, depth: number): unknown {
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (depth > MAX_EMBEDDED_DEPTH) return WITHHELD;
  if (Array.isArray(value)) {
    return value.map((entry) => readablePart(entry, reader, depth + 1)).filter((entry) => entry !== WITHHELD);
  }
  const object = value as Record<string, unknown>;
  return isReadableBy(object, reader) ? readableMembers(object, reader, depth) : WITHHELD;
}

function isReadableBy(
  object: Readonly<Record<string, unknown>>,
  { principals, onMalformed }: Reader,
): boolean {
  if (!Object.hasOwn(object, '_rperm')) return true;
  const readers = object['_rperm'];
  if (Array.isArray(readers)) return readers.some((reader) => principals.has(reader as string));
  onMalformed(readers === null ? 'null' : typeof readers);
  return false;
}

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
