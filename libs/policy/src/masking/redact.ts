import { setOwn } from '#core';
import { isInternalField } from '../model/field-names.js';
import type { ValueType } from '../model/value-type.js';
import { STORED_POINTER } from './withheld-objects.js';

/** Deeper than Parse can store. Anything deeper is dropped rather than returned unchecked. */
const MAX_REDACTED_DEPTH = 64;

interface Withheld {
  readonly className: string;
  readonly __redacted: true;
}

/** What redaction asks of the agent that is shown a value. */
export interface Withholding {
  /** Whether the class is hidden from, or filtered for, this agent. */
  isWithheld(className: string): boolean;
  /** Whether the schema or the policy has a class of the name: a text names no other. */
  hasClass(className: string): boolean;
  rowType(className: string): ValueType | undefined;
}

/**
 * The last pass over every row that leaves the store, in every authentication mode: objects and stored pointers of withheld
 * classes become a placeholder, internal columns and ACLs are removed at any depth. A text in a column of texts is no pointer.
 * @param type what is known of the value; objects are judged by what is stored
 */
export function redact(value: unknown, viewer: Withholding, type?: ValueType, depth = 0): unknown {
  if (typeof value === 'string') {
    const className = withheldPointer(value, viewer, type);
    return className === null ? value : placeholder(className);
  }
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (depth >= MAX_REDACTED_DEPTH) return null;
  if (Array.isArray(value)) return value.map((entry) => redact(entry, viewer, type?.entries, depth + 1));
  const { className, __type: form } = value as { className?: unknown; __type?: unknown };
  const isNamed = typeof className === 'string';
  if (isNamed && viewer.isWithheld(className)) return placeholder(className);
  const known = isNamed && form === 'Object' ? (viewer.rowType(className) ?? type) : type;
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (isInternalField(key) || key === 'ACL') continue;
    if (key.includes('$') && withheldPointer(key, viewer, undefined) !== null) continue;
    const member: unknown = (value as Record<string, unknown>)[key];
    // Most values: whatever their column, they name no class.
    const isSimple =
      typeof member === 'string' ? !member.includes('$') : member === null || typeof member !== 'object';
    setOwn(kept, key, isSimple ? member : redact(member, viewer, known?.member?.(key), depth + 1));
  }
  return kept;
}

/** Whether `redact` would put a placeholder in the value or in its place. */
export function holdsWithheld(value: unknown, viewer: Withholding, type?: ValueType): boolean {
  if (typeof value === 'string') return withheldPointer(value, viewer, type) !== null;
  if (value === null || typeof value !== 'object' || value instanceof Date) return false;
  const { className } = value as { className?: unknown };
  if (!Array.isArray(value) && typeof className === 'string' && viewer.isWithheld(className)) return true;
  return Object.entries(value).some(
    ([key, member]) =>
      withheldPointer(key, viewer, undefined) !== null ||
      holdsWithheld(member, viewer, inside(value, key, type)),
  );
}

function placeholder(className: string): Withheld {
  return { className, __redacted: true };
}

/** The one answer to whether a text is a pointer that the agent may not see. */
function withheldPointer(text: string, viewer: Withholding, type: ValueType | undefined): string | null {
  if (!text.includes('$') || isText(type)) return null;
  const className = STORED_POINTER.exec(text)?.[1];
  return className !== undefined && viewer.hasClass(className) && viewer.isWithheld(className)
    ? className
    : null;
}

const isText = (type: ValueType | undefined): boolean => type?.type === 'String' && !type.uncertain;

/** What is known of a member or an entry. */
function inside(value: object, key: string, type: ValueType | undefined): ValueType | undefined {
  return Array.isArray(value) ? type?.entries : type?.member?.(key);
}

/** Objects that are nested deeper are not checked, and so not returned. */
const MAX_EMBEDDED_DEPTH = 32;

/**
 * Removes embedded rows whose own rights (`_rperm`) exclude the caller: a list loses them, a field becomes null. Malformed
 * rights exclude everyone. The rights of the row itself are not checked again.
 */
export function withholdUnreadable(
  row: Readonly<Record<string, unknown>>,
  principals: readonly string[],
  onMalformed: OnMalformed = () => undefined,
): Record<string, unknown> {
  return readableMembers(row, { principals: new Set(principals), onMalformed }, 0);
}

/** Receives the type of a malformed `_rperm`. */
type OnMalformed = (type: string) => void;

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
