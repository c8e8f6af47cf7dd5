import { Inject, Injectable } from '@nestjs/common';
import {
  type Agent,
  type Owner,
  toOwner,
  type McpRequest,
  type CallApproval,
  isJsonObject,
  type JsonObject,
  member,
} from '#core';
import { toQuestion, readAnswer, type WireRequest } from '../client-requests/question-wire.js';
import type { RequestStateContent } from '../client-requests/request-state.js';
import { McpMethod } from '../methods/method.js';
import {
  declaresTasks,
  tasksNotDeclared,
  type RpcError,
  invalidParams,
  methodNotFound,
  type ProtocolError,
} from '../protocol.js';

/** A call that continues as a task, with everything that its runs need. Its gates have admitted it. */
export interface TaskCall {
  readonly agent: Agent;
  readonly tool: string;
  readonly args: JsonObject;
  readonly capabilities: JsonObject;
  readonly version: string;
  readonly correlationId?: string;
  /** W3C `traceparent` of the call that began it. */
  readonly began?: string;
  /** Earlier answers of the client. */
  readonly soFar?: RequestStateContent;
  /** The approval that it needed. */
  readonly approval?: CallApproval;
}

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** A task as its owner sees it. */
export interface TaskState {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** Milliseconds that the task is kept after its creation. */
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  /** The result of a completed task, in the form of a `tools/call` result. */
  readonly result?: JsonObject;
  /** The protocol error of a failed task. A task whose tool failed is completed. */
  readonly error?: RpcError;
  /** The open client requests of a task that waits for its client. */
  readonly inputRequests?: Readonly<Record<string, WireRequest>>;
}

/**
 * Calls that continue after their answer (docs/guide/tasks.md). Implementations over shared state serve all replicas.
 */
export abstract class TaskStore {
  /**
   * Takes the call over. What is returned survives this process where the store's state does.
   * @param timeout milliseconds to wait for an outcome, for a call that may be answered at once
   */
  abstract start(call: TaskCall, timeout: number): Promise<TaskState>;
  /** `undefined`: this caller has no such task. What a run read with other rights than the caller has now is not shown. */
  abstract find(taskId: string, agent: Agent): Promise<TaskState | undefined>;
  /**
   * Accepts answers to the client requests of the task; unknown keys are ignored.
   * @returns false when this owner has no such task. @throws ProtocolError for a malformed answer
   */
  abstract answer(taskId: string, owner: Owner, responses: JsonObject): Promise<boolean>;
  /** Ends the task if it has not ended. @returns false when this owner has no such task */
  abstract cancel(taskId: string, owner: Owner): Promise<boolean>;
}

/**
 * The responses to open client requests, without unknown keys and without responses that do not fit. The requests of
 * the latter stay open.
 * @throws ProtocolError for a malformed answer
 */
export function fittingResponses(
  open: Readonly<Record<string, WireRequest>>,
  responses: JsonObject,
): JsonObject {
  const fitting: Record<string, unknown> = {};
  for (const [key, request] of Object.entries(open)) {
    const sent = member(responses, key);
    const question = toQuestion(request);
    if (sent === undefined || !question) continue;
    const reading = readAnswer(question, sent);
    if (reading.ok) fitting[key] = sent;
    else if (reading.fault === 'malformed') throw invalidParams(`Invalid input response: ${key}`);
  }
  return fitting;
}

/** The same error for an unknown task, an expired task and a task of another owner. */
const unknownTask = (): ProtocolError => invalidParams('Unknown task');

/** The answer to a `tools/call` that continues as a task. */
export function createdTask({ taskId, ...state }: TaskState): JsonObject {
  const { status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = state;
  return { resultType: 'task', taskId, status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs };
}

/** The methods of tasks, for clients that declare the extension in the request. */
@Injectable()
export class TaskMethods {
  /** @param store null: no call continues as a task */
  constructor(@Inject(TaskStore) private readonly store: TaskStore | null) {}

  @McpMethod('tasks/get', { legacySince: null })
  async get(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    const { store, taskId } = this.asked('tasks/get', params, request);
    const state = await store.find(taskId, request.agent);
    if (!state) throw unknownTask();
    return { ...state };
  }

  @McpMethod('tasks/update', { legacySince: null })
  async update(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    const { store, taskId, owner } = this.asked('tasks/update', params, request);
    const { inputResponses } = params;
    if (!isJsonObject(inputResponses)) throw invalidParams('inputResponses must be an object');
    if (!(await store.answer(taskId, owner, inputResponses))) throw unknownTask();
    return {};
  }

  @McpMethod('tasks/cancel', { legacySince: null })
  async cancel(params: JsonObject, request: McpRequest): Promise<JsonObject> {
    const { store, taskId, owner } = this.asked('tasks/cancel', params, request);
    if (!(await store.cancel(taskId, owner))) throw unknownTask();
    return {};
  }

  private asked(method: string, { taskId }: JsonObject, request: McpRequest) {
    if (!this.store) throw methodNotFound(method);
    if (!declaresTasks(request)) throw tasksNotDeclared();
    if (typeof taskId !== 'string') throw unknownTask();
    return { store: this.store, taskId, owner: toOwner(request.agent) };
  }
}
