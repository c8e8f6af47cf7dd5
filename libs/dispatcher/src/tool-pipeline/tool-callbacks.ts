import { Injectable, Logger } from '@nestjs/common';
import type { Agent } from '#agent';
import type { ToolOutcome } from '#tools';

/** A call as callbacks are told of it. `args` is a copy: a callback changes nothing of what runs. */
export interface AnnouncedCall {
  /** Name of the tool. */
  readonly tool: string;
  /** A copy of the arguments. */
  readonly args: unknown;
  /** Who calls. */
  readonly agent: Agent;
}

/** Receives a call that passed every gate, before the tool runs. */
export type BeforeToolCall = (call: AnnouncedCall) => unknown;
/** Receives a call and what came of it. */
export type AfterToolCall = (call: AnnouncedCall, outcome: ToolOutcome) => unknown;
/** Receives what was thrown or refused, and the call. */
export type ToolCallError = (error: unknown, call: AnnouncedCall) => unknown;

/**
 * What an application wants to hear of tool calls, any number of each, in the order they were added. They only listen:
 * nothing waits for them, and one that fails is logged and otherwise ignored.
 */
@Injectable()
export class ToolCallbacks {
  private readonly logger = new Logger(ToolCallbacks.name);
  private readonly before: BeforeToolCall[] = [];
  private readonly after: AfterToolCall[] = [];
  private readonly failed: ToolCallError[] = [];

  /** Past every gate, approval included, and before the tool runs. */
  beforeToolCall(callback: BeforeToolCall): this {
    this.before.push(callback);
    return this;
  }

  /** With the result that goes to the caller, or the cancellation of a call that had begun. */
  afterToolCall(callback: AfterToolCall): this {
    this.after.push(callback);
    return this;
  }

  /** With what was thrown, or the refusal that was returned; gates included. */
  onError(callback: ToolCallError): this {
    this.failed.push(callback);
    return this;
  }

  /** @internal Told by the pipeline. */
  announceBefore(call: AnnouncedCall): void {
    this.tell(this.before, call, (callback, told) => callback(told));
  }

  /** @internal Told by the pipeline. */
  announceAfter(call: AnnouncedCall, outcome: ToolOutcome): void {
    this.tell(this.after, call, (callback, told) => callback(told, outcome));
  }

  /** @internal Told by the pipeline. */
  announceError(error: unknown, call: AnnouncedCall): void {
    this.tell(this.failed, call, (callback, told) => callback(error, told));
  }

  private tell<Callback>(
    callbacks: readonly Callback[],
    call: AnnouncedCall,
    invoke: (callback: Callback, told: AnnouncedCall) => unknown,
  ): void {
    for (const callback of callbacks) {
      void (async () => invoke(callback, { ...call, args: structuredClone(call.args) }))().catch(
        (error: unknown) => this.logger.error(`a callback of '${call.tool}' failed: ${String(error)}`),
      );
    }
  }
}
