import { Refused, refusals } from '#agent';
import type { ClassAccess } from '#policy';
import type { RecordsParts } from './row-rules.js';

/** An operation of class-level permissions. */
export type ClassOperation = 'find' | 'create' | 'update' | 'delete' | 'addField';

/**
 * Whether class-level permissions let this call's agent do this. The master key passes; an identity whose rights nobody
 * worked out has none.
 * @throws Refused `access_denied`, kind `clp_denied`
 */
export async function assertClassPermits(
  { agent }: RecordsParts,
  { className }: ClassAccess,
  operation: ClassOperation,
): Promise<void> {
  if (agent.usesMasterKey) return;
  throw new Refused(
    refusals.accessDenied(
      'class_permission',
      `Class '${className}' does not permit ${operation} to this agent`,
      'clp_denied',
    ),
  );
}
