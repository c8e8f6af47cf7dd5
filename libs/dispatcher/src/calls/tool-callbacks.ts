import { Injectable, Logger } from '@nestjs/common';
import { type Agent, type Refusal, Refused } from '#core';
import type { ToolOutcome } from '#tools';
import { after, type Awaitable, type Guard, type Interceptor, type ToolRun, beginsTask } from './tool-run.js';

/** A call as callbacks receive it. `args` is a copy, so a callback cannot change the run. */
export interface AnnouncedCall {
  /** Name of the tool. */
  readonly tool: string;
  /** A copy of the arguments. */
  readonly args: unknown;
  /** The calling agent. */
  readonly agent: Agent;
}

/** Receives a call that passed every gate, before the tool runs. */
export type BeforeToolCall = (call: AnnouncedCall) => unknown;
/** Receives a call and its outcome. */
export type AfterToolCall = (call: AnnouncedCall, outcome: ToolOutcome) => unknown;
/** Receives the thrown error or the refusal, and the call. */
export type ToolCallError = (error: unknown, call: AnnouncedCall) => unknown;

/**
 * Callbacks of an application for tool calls, any number of each kind, called in the order they were added. They only
 * observe: no call waits for them, and a callback that fails is logged and ignored.
 */
@Injectable()
export class ToolCallbacks {
  private readonly logger = new Logger(ToolCallbacks.name);
  private readonly before: BeforeToolCall[] = [];
  private readonly after: AfterToolCall[] = [];
  private readonly failed: ToolCallError[] = [];

  /** Called after every gate, approval included, and before the tool runs. */
  beforeToolCall(callback: BeforeToolCall): this {
    this.before.push(callback);
    return this;
  }

  /** Called with the result for the caller, or with the cancellation of a call that had begun. */
  afterToolCall(callback: AfterToolCall): this {
    this.after.push(callback);
    return this;
  }

  /** Called with the thrown error or the returned refusal, including refusals by gates. */
  onError(callback: ToolCallError): this {
    this.failed.push(callback);
    return this;
  }

  /** @internal Called by the pipeline. */
  announceBefore(call: AnnouncedCall): void {
    this.report(this.before, call, (callback, announcedCall) => callback(announcedCall));
  }

  /** @internal Called by the pipeline. */
  announceAfter(call: AnnouncedCall, outcome: ToolOutcome): void {
    this.report(this.after, call, (callback, announcedCall) => callback(announcedCall, outcome));
  }

  /** @internal Called by the pipeline. */
  announceError(thrown: unknown, refusal: Refusal, call: AnnouncedCall): void {
    if (this.failed.length === 0) return;
    const error = thrown ?? new Refused(refusal);
    this.report(this.failed, call, (callback, announcedCall) => callback(error, announcedCall));
  }

  private report<Callback>(
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

const announced = ({ name, args, context }: ToolRun): AnnouncedCall => ({
  tool: name,
  args,
  agent: context.agent,
});

/** Reports that every guard admitted the call. It refuses nothing itself. */
@Injectable()
export class BeforeCallGuard implements Guard {
  readonly gate = 'before_callbacks';

  constructor(private readonly callbacks: ToolCallbacks) {}

  check(run: ToolRun): null {
    // The callback runs when the task runs.
    if (!beginsTask(run)) this.callbacks.announceBefore(announced(run));
    return null;
  }
}

/** The call begins here. Reports its result, or a cancellation after the start. */
@Injectable()
export class AfterCallInterceptor implements Interceptor {
  constructor(private readonly callbacks: ToolCallbacks) {}

  intercept(run: ToolRun, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
    run.begin();
    return after(
      next,
      (outcome) => this.ended(run, outcome),
      (error) => this.failed(run, error),
    );
  }

  private ended(run: ToolRun, outcome: ToolOutcome): ToolOutcome {
    if (outcome.ok) this.callbacks.announceAfter(announced(run), outcome);
    return outcome;
  }

  /** @throws the error */
  private failed(run: ToolRun, error: unknown): never {
    if (error instanceof Refused && error.refusal.code === 'cancelled')
      this.callbacks.announceAfter(announced(run), { ok: false, refusal: error.refusal });
    throw error;
  }
}
