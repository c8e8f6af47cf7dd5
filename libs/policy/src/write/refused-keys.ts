import { toLowerCamel } from '../model/field-names.js';
import { isInternalField } from '../model/internal-fields.js';
import { isMagicName } from '../model/magic-names.js';
import { isPlainObject } from '../model/plain-object.js';

/** What the store sets itself, or what would make a value pass for another object. */
const SET_BY_THE_STORE = new Set([
  'objectId',
  'id',
  'createdAt',
  'created_at',
  'updatedAt',
  'updated_at',
  'className',
  '__type',
]);

/** Deeper than any argument needs to be; what lies below is refused rather than passed unseen. */
const MAX_DEPTH = 32;

/** Credentials and row rights, under every spelling, and names that are more than data; never given, at any depth. */
export function isCredentialOrRight(key: string): boolean {
  return isInternalField(key) || toLowerCamel(key) === 'acl' || isMagicName(key);
}

/** A top-level name that neither a write nor a method argument may carry. */
export function isNeverGiven(key: string): boolean {
  return SET_BY_THE_STORE.has(key) || isCredentialOrRight(key);
}

/**
 * The keys of a method's arguments that no declaration can permit: the whole list at the top, credentials and row rights
 * at any depth. Nesting past 32 levels counts as one of them.
 */
export function refusedArgumentKeys(args: Readonly<Record<string, unknown>>): readonly string[] {
  const found = new Set(Object.keys(args).filter(isNeverGiven));
  for (const value of Object.values(args)) collect(value, found, 1);
  return [...found];
}

function collect(value: unknown, found: Set<string>, depth: number): void {
  if (value === null || typeof value !== 'object') return;
  if (depth > MAX_DEPTH) {
    found.add(`(nested more than ${MAX_DEPTH} levels)`);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    if (isPlainObject(value) && isCredentialOrRight(key)) found.add(key);
    collect(member, found, depth + 1);
  }
}
