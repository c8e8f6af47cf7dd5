import { orThrow } from '#agent';
import type { ClassOperation } from '#policy';
import type { RecordsParts } from './row-rules.js';

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
