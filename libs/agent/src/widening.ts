import type { Principals } from './principals.js';

/** How a sub-agent would have had rights in the database that its parent has not. */
export interface Widening {
  readonly reason: 'child_master_key' | 'child_extra_principals';
  readonly parent: readonly string[];
  /** Empty for the master key. */
  readonly child: readonly string[];
  /** What the child has and the parent has not. */
  readonly extra: readonly string[];
}

/** The rights of a child are a subset of its parent's; the master key holds all. Null when they are. */
export function widening(parent: Principals, child: Principals): Widening | null {
  if (parent.strings === null) return null;
  if (child.strings === null)
    return { reason: 'child_master_key', parent: parent.strings, child: [], extra: [] };
  const held = new Set(parent.strings);
  const extra = child.strings.filter((principal) => !held.has(principal));
  if (extra.length === 0) return null;
  return { reason: 'child_extra_principals', parent: parent.strings, child: child.strings, extra };
}
