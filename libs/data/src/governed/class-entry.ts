import { Refused } from '#agent';
import { type ClassAccess, isRefusal, type ReadOperation } from '#policy';
import type { RecordsParts } from './row-rules.js';

/** The class gate of a call. @throws Refused */
export function enterClass(
  { scope, agent, trace }: RecordsParts,
  className: unknown,
  operation: ReadOperation | 'describe',
): ClassAccess {
  const entered = scope.enter(agent, className, operation);
  if (isRefusal(entered)) throw new Refused(entered);
  trace?.passed('class', entered.className);
  return entered;
}
