import { orThrow, type Tier } from '#agent';
import type { ClassOperation } from '#policy';
import type { RecordsParts } from './row-rules.js';

/** What class-level permissions are asked for where a declared method is called. */
export const OPERATION_OF_TIER: Readonly<Record<Tier, ClassOperation>> = {
  readonly: 'find',
  write: 'update',
  admin: 'delete',
};

/**
 * Whether class-level permissions let this call's agent do this. The master key passes.
 * @throws Refused `access_denied`, kind `clp_denied`
 */
export function assertClassPermits(
  { scope }: RecordsParts,
  className: string,
  operation: ClassOperation,
): void {
  orThrow(scope.rights.gate(className, operation));
}
