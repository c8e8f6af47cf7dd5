import { isJsonObject, type JsonObject } from '../json-object.js';
import type { MethodRequest } from '../methods/method.js';
import { invalidParams, methodNotFound, type ProtocolFault } from '../protocol-fault.js';
import { type TaskDesk, taskOwner, type TaskState } from './task-desk.js';
import { declaresTasks, tasksNotDeclared } from './tasks-extension.js';

/** The same for a task that never was, that ended long ago, and that is somebody else's. */
const unknownTask = (): ProtocolFault => invalidParams('Unknown task');

/** The answer to a `tools/call` that goes on as a task. */
export function createdTask({ taskId, ...state }: TaskState): JsonObject {
  const { status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = state;
  return { resultType: 'task', taskId, status, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs };
}

/** `tasks/get`, `tasks/update` and `tasks/cancel`, for clients that declare the extension with the request. */
export class TaskMethods {
  constructor(private readonly desk: TaskDesk | undefined) {}

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
