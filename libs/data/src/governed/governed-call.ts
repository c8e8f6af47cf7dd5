import { type CallTrace, orThrow, type Refusal, Refused, type Tier } from '#core';
import {
  type ClassAccess,
  type ClassOperation,
  type ClassReach,
  type ClassSchema,
  describeMasks,
  type IndexSchema,
  isRefusal,
  type ReadOperation,
  type RowOperation,
} from '#policy';
import type { Metering, Run } from '../metering/metered-stores.js';
import type { OperationContext, Reads, StoreCall } from '../record-store.js';

/**
 * The common base of every governed access of one call: the call itself, its limits at the database, and its ways to rows, where
 * errors of the store are refusals.
 */
export interface GovernedCall extends StoreCall {
  readonly operation: OperationContext;
  readonly read: Run<Reads>;
  /** Reads with the operator's authority, limited only by the constraint: for the operator's own predicates. */
  readonly readAsOperator: Run<Reads>;
  /** Every index of a class of the scope's snapshot. @throws StoreError */
  readonly listIndexes: (schema: ClassSchema) => Promise<readonly IndexSchema[]>;
  /** Whether the database has other classes or columns than the scope's snapshot. @throws Refused when it cannot be read */
  readonly lookAgain: () => Promise<boolean>;
  readonly trace?: CallTrace | undefined;
  /** Takes remarks for the answer. */
  readonly note?: ((text: string) => void) | undefined;
  /** Counts and schedules every operation of the call. */
  readonly metering: Metering;
}

/** What the gates of a class need of a call. They read no row. */
export type ClassGate = Pick<GovernedCall, 'agent' | 'scope' | 'trace'>;

interface ReachingCall extends ClassGate {
  readonly metering?: Pick<Metering, 'meter'>;
}

/** The gate of classes that a call reaches from another one. Those that it passes are reported to the meter of the call. */
export function createReach({ agent, scope, metering }: ReachingCall): ClassReach {
  return {
    reach: (className, site) => {
      const access = scope.reach(agent, className, site);
      if (!isRefusal(access)) metering?.meter?.reaches?.(access.className);
      return access;
    },
  };
}

/** The refusal of a class that a pointer names, by the same gate; null for one that the call reaches. */
export function pointerGate(call: ReachingCall): (className: string) => Refusal | null {
  const gate = createReach(call);
  return (className) => {
    const judged = gate.reach(className, 'pointer');
    return isRefusal(judged) ? judged : null;
  };
}

export interface PredicateOptions {
  readonly canonical: boolean;
  /** The operation on the rows, as class-level permissions name it. */
  readonly operation: RowOperation;
}

/** The class gate of a call. @throws Refused */
export function enterClass(
  { scope, agent, trace }: ClassGate,
  className: unknown,
  operation: ReadOperation | 'describe',
): ClassAccess {
  const entered = scope.enter(agent, className, operation);
  if (isRefusal(entered)) throw new Refused(entered);
  tracePassed(trace, 'class', entered);
  return entered;
}

/** A class that the call may use, and the masks of its fields. */
export function tracePassed(trace: CallTrace | undefined, gate: string, access: ClassAccess): void {
  trace?.notePassed(gate, access.className);
  if (trace && access.masks) trace.noteMasks(access.className, describeMasks(access.masks));
}

/** The class permission that a call of a declared method needs. */
export const OPERATION_OF_TIER: Readonly<Record<Tier, ClassOperation>> = {
  readonly: 'find',
  write: 'update',
  admin: 'delete',
};

/**
 * Whether class-level permissions permit the operation to this call's agent. The master key passes.
 * @throws Refused `access_denied`, kind `clp_denied`
 */
export function assertClassPermits({ scope }: ClassGate, className: string, operation: ClassOperation): void {
  orThrow(scope.rights.gate(className, operation));
}
