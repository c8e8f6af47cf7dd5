import type { Document } from 'mongodb';
import type { Principals } from '#core';

/** Rows without an ACL are public; an empty list permits a row to the master key only. */
export function aclToQuery(right: 'read' | 'write', principals: readonly string[]): Document {
  const column = right === 'read' ? '_rperm' : '_wperm';
  return { $or: [{ [column]: { $in: [...principals] } }, { [column]: { $exists: false } }] };
}

/** The `$match` of a handler's own query. */
export interface AclMatchStage {
  /** A filter over stored documents. */
  readonly $match: Readonly<Record<string, unknown>>;
}

const toStage = (right: 'read' | 'write', { strings }: Principals): AclMatchStage | null =>
  strings === null ? null : { $match: aclToQuery(right, strings) };

/**
 * The first stage of a handler's own pipeline over a collection of Parse: the rows whose ACL lets an agent read them
 * (docs/guide/writing-tools.md#own-queries).
 * @param principals of `PrincipalResolver.resolveAgent`
 * @returns null for the master key, whose queries have no such stage
 */
export function aclReadMatchStage(principals: Principals): AclMatchStage | null {
  return toStage('read', principals);
}

/** The same for the rows that the agent may change. */
export function aclWriteMatchStage(principals: Principals): AclMatchStage | null {
  return toStage('write', principals);
}
