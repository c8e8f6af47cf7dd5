import { createHmac } from 'node:crypto';
import { isPlainObject } from '../model/plain-object.js';

/** Characters of base64url: 132 bits, so that two values share one by design only. */
const LENGTH = 22;
const PREFIX = 'h_';

/** Where a pseudonym means the same: in one field or domain, for one tenant or for all. */
export interface PseudonymScope {
  /** Of fields that share their pseudonyms; null: the field's own. */
  readonly domain: string | null;
  readonly className: string;
  readonly path: string;
  /** Null: none, or shared by all. */
  readonly tenant: string | number | null;
  readonly acrossTenants: boolean;
}

/** Keyed names for values. Without the key nobody can find a value by trying; equal values of a scope have equal names. */
export class Pseudonyms {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** A value that is missing has a name like any other. */
  of(value: unknown, scope: PseudonymScope): string {
    const { domain, className, path, tenant, acrossTenants } = scope;
    const field = domain === null ? ['field', className, path] : ['domain', domain];
    const owner = acrossTenants ? ['all'] : ['tenant', tenant];
    const text = JSON.stringify([field, owner, ordered(value ?? null)]);
    return PREFIX + createHmac('sha256', this.#key).update(text, 'utf8').digest('base64url').slice(0, LENGTH);
  }
}

/** The same object written in another order is the same value. */
function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isPlainObject(value)) return value;
  // Under a name of its own, so that a list of pairs is another value.
  const members = Object.keys(value).sort();
  return { members: members.map((key) => [key, ordered(value[key])]) };
}
