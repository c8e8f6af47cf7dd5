import { isInternalField } from '../model/internal-fields.js';
import { STORED_POINTER } from './withheld-names.js';

/** Deeper nesting than Parse can store; what lies below is dropped rather than passed unseen. */
const MAX_DEPTH = 64;

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
  return walk(value, isWithheld, 0);
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

function walk(value: unknown, isWithheld: (className: string) => boolean, depth: number): unknown {
  if (typeof value === 'string') {
    const className = withheldPointer(value, isWithheld);
    return className === null ? value : placeholder(className);
  }
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (depth >= MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.map((entry) => walk(entry, isWithheld, depth + 1));
  const className = (value as { className?: unknown }).className;
  if (typeof className === 'string' && isWithheld(className)) return placeholder(className);
  const kept: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    if (isInternalField(key) || key === 'ACL') continue;
    if (withheldPointer(key, isWithheld) !== null) continue;
    // `__proto__` arriving as data must stay a plain member.
    if (key === '__proto__')
      Object.defineProperty(kept, key, { value: walk(member, isWithheld, depth + 1), enumerable: true });
    else kept[key] = walk(member, isWithheld, depth + 1);
  }
  return kept;
}
