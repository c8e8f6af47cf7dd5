import { isInternalField } from '../model/field-names.js';

/** Deeper than Parse can store. Anything deeper is dropped rather than returned unchecked. */
const MAX_REDACTED_DEPTH = 64;

/** `Class$id`, as pointer columns are stored. */
export const STORED_POINTER = /^([A-Za-z_][A-Za-z0-9_]*)\$(.+)$/s;

interface Withheld {
  readonly className: string;
  readonly __redacted: true;
}

/**
 * The last pass over every row that leaves the store, in every authentication mode: objects and stored pointers of withheld
 * classes become a placeholder, internal columns and ACLs are removed at any depth.
 * @param isWithheld whether the class is hidden from, or filtered for, this agent
 */
export function redact(value: unknown, isWithheld: (className: string) => boolean): unknown {
  return redacted(value, isWithheld, 0);
}

/** Whether `redact` would put a placeholder in the value or in its place. */
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
    // `__proto__` in data must stay a plain member.
    if (key === '__proto__')
      Object.defineProperty(kept, key, { value: redacted(member, isWithheld, depth + 1), enumerable: true });
    else kept[key] = redacted(member, isWithheld, depth + 1);
  }
  return kept;
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
