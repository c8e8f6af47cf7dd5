import { type CallTrace, Refused } from '#agent';
import { type ClassAccess, describeMasks, isRefusal, type ReadOperation } from '#policy';
import type { RecordsParts } from './row-rules.js';

/** The class gate of a call. @throws Refused */
export function enterClass(
  { scope, agent, trace }: RecordsParts,
  className: unknown,
  operation: ReadOperation | 'describe',
): ClassAccess {
  const entered = scope.enter(agent, className, operation);
  if (isRefusal(entered)) throw new Refused(entered);
  tracePassed(trace, 'class', entered);
  return entered;
}

/** A class that the call may use, and what of it is masked. */
export function tracePassed(trace: CallTrace | undefined, gate: string, access: ClassAccess): void {
  trace?.passed(gate, access.className);
  if (trace && access.masks) trace.masked(access.className, describeMasks(access.masks));
}
