import type { Agent } from '#agent';
import type { AskedSoFar } from '../asks/request-state.js';
import type { WireRequest } from '../asks/question-wire.js';
import type { JsonObject } from '../json-object.js';
import type { RpcError } from '../kernel-reply.js';

/** Whose a task is: for anybody else there is no such task. */
export interface TaskOwner {
  readonly principal: string;
  readonly tenant: string | number | null;
  /** Name of the agent's shape. */
  readonly agent: string;
}

export function taskOwner({ principal, tenantId, shape }: Agent): TaskOwner {
  return { principal, tenant: tenantId, agent: shape.name };
}

/** A call that is to go on as a task, with all that its runs need. Its gates have let it pass. */
export interface TaskCall {
  readonly agent: Agent;
  readonly tool: string;
  readonly args: JsonObject;
  readonly capabilities: JsonObject;
  readonly version: string;
  readonly correlationId?: string;
  /** W3C `traceparent` of the call that began it. */
  readonly began?: string;
  /** What the client answered before. */
  readonly soFar?: AskedSoFar;
  /** Who decided upon it, when somebody had to. */
  readonly approver?: string;
}

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** A task as its owner may see it. */
export interface TaskState {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Milliseconds that the task is kept from its creation on. */
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  /** Of a completed task: what `tools/call` would have answered. */
  readonly result?: JsonObject;
  /** Of a failed one: an error of the protocol; a tool that failed has completed. */
  readonly error?: RpcError;
  /** Of one that waits for its client: only what is not answered yet. */
  readonly inputRequests?: Readonly<Record<string, WireRequest>>;
}

/** Calls that go on after their answer (docs/tasks.md). Implementations over shared state serve all replicas. */
export abstract class TaskDesk {
  /**
   * Takes the call over. What is returned survives this process where the desk's state does.
   * @param patience milliseconds to wait for an outcome, for a call that may be answered at once
   */
  abstract start(call: TaskCall, patience: number): Promise<TaskState>;
  /** `undefined`: this owner has no such task. */
  abstract find(taskId: string, owner: TaskOwner): Promise<TaskState | undefined>;
  /**
   * Takes answers to what the task asked; keys it did not ask are ignored.
   * @returns false when this owner has no such task. @throws ProtocolFault for what is no answer at all
   */
  abstract answer(taskId: string, owner: TaskOwner, responses: JsonObject): Promise<boolean>;
  /** Ends the task if it has not ended. @returns false when this owner has no such task */
  abstract cancel(taskId: string, owner: TaskOwner): Promise<boolean>;
}
