import type { Agent, CallContext } from '#core';
import type { ToolDefinition } from '#tools';
import { declaresTasks, tasksNotDeclared } from '../client-capabilities.js';
import { questionOf, readAnswer, type WireRequest } from '../client-requests/question-wire.js';
import type { AskedSoFar } from '../client-requests/request-state.js';
import { isJsonObject, type JsonObject, member } from '../json-object.js';
import type { RpcError } from '../kernel-reply.js';
import type { MethodRequest } from '../methods/method.js';
import { invalidParams, methodNotFound, type ProtocolFault } from '../protocol-fault.js';

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

/** Calls that go on after their answer (docs/guide/tasks.md). Implementations over shared state serve all replicas. */
export abstract class TaskStore {
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

/**
 * The responses that answer what is open: keys that were not asked are left out, and so is what does not fit its question,
 * which stays open.
 * @throws ProtocolFault for what is no answer at all
 */
export function fittingResponses(
  open: Readonly<Record<string, WireRequest>>,
  responses: JsonObject,
): JsonObject {
  const fitting: Record<string, unknown> = {};
  for (const [key, request] of Object.entries(open)) {
    const sent = member(responses, key);
    const question = questionOf(request);
    if (sent === undefined || !question) continue;
    const reading = readAnswer(question, sent);
    if (reading.ok) fitting[key] = sent;
    else if (reading.fault === 'malformed') throw invalidParams(`Invalid input response: ${key}`);
  }
  return fitting;
}

/** Ends a run that goes on as a task. Not a failure: the kernel turns it into the answer. */
export class ContinuesAsTask extends Error {
  override readonly name = 'ContinuesAsTask';
  /** Who decided upon the call, when somebody had to: for the records of its later runs. */
  approver: string | undefined;

  constructor() {
    super('the call goes on as a task');
  }
}

/** Whether the call goes on as a task before its handler is asked anything. */
export function beginsTask({
  definition,
  context,
}: {
  readonly definition: Pick<ToolDefinition, 'task'> | undefined;
  readonly context: Pick<CallContext, 'background'>;
}): boolean {
  const always = definition?.task === 'required' || definition?.task === 'optional';
  return always && context.background === 'offered';
}

/** Why a run ended that another worker takes up: what comes of the call is for that one to record. */
export const RUN_HANDED_OVER = 'run_handed_over';

/** The same for a task that never was, that ended long ago, and that is somebody else's. */
const unknownTask = (): ProtocolFault => invalidParams('Unknown task');

/** The answer to a `tools/call` that goes on as a task. */
export function createdTask({ taskId, ...state }: TaskState): JsonObject {
  const { status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = state;
  return { resultType: 'task', taskId, status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs };
}

/** `tasks/get`, `tasks/update` and `tasks/cancel`, for clients that declare the extension with the request. */
export class TaskMethods {
  constructor(private readonly desk: TaskStore | undefined) {}

  async get(request: MethodRequest): Promise<JsonObject> {
    const { desk, taskId, owner } = this.asked('tasks/get', request);
    const state = await desk.find(taskId, owner);
    if (!state) throw unknownTask();
    return { ...state };
  }

  async update(request: MethodRequest): Promise<JsonObject> {
    const { desk, taskId, owner } = this.asked('tasks/update', request);
    const { inputResponses } = request.params;
    if (!isJsonObject(inputResponses)) throw invalidParams('inputResponses must be an object');
    if (!(await desk.answer(taskId, owner, inputResponses))) throw unknownTask();
    return {};
  }

  async cancel(request: MethodRequest): Promise<JsonObject> {
    const { desk, taskId, owner } = this.asked('tasks/cancel', request);
    if (!(await desk.cancel(taskId, owner))) throw unknownTask();
    return {};
  }

  private asked(method: string, { params, context, dialect }: MethodRequest) {
    if (!this.desk) throw methodNotFound(method);
    if (!declaresTasks(context.clientCapabilities, dialect)) throw tasksNotDeclared();
    const { taskId } = params;
    if (typeof taskId !== 'string') throw unknownTask();
    return { desk: this.desk, taskId, owner: taskOwner(context.agent) };
  }
}
