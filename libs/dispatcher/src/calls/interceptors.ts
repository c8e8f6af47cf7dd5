import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { defer, finalize, map, mergeMap, Observable } from 'rxjs';
import { type RequestContext, FairQueue, NoCapacityError, type Refusal, refusals, Refused } from '#core';
import { PolicyCache, Policies } from '#policy';
import {
  compileCanaries,
  declaredNames,
  fitToSize,
  isBuiltInName,
  ToolContent,
  type ToolOutcome,
} from '#tools';
import { cancelReason } from './guards.js';
import { secondsFor, toolExecutionOf } from './tool-execution.js';

/**
 * Aborts the run and its database operation when the caller disconnects or the tool exceeds its timeout. Checkpoint 2:
 * a result that arrives later is discarded.
 */
@Injectable()
export class DeadlineInterceptor implements NestInterceptor {
  intercept(host: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { definition, name, context, clock, abort } = toolExecutionOf(host);
    const { signal } = context;
    const seconds = secondsFor(definition, context);
    return new Observable((subscriber) => {
      const refuse = (refusal: Refusal) => {
        subscriber.error(new Refused(refusal));
        abort(refusal.code);
      };
      const gone = () => refuse(refusals.cancelled(cancelReason(signal)));
      if (signal.aborted) return gone();
      const late = refusals.toolTimedOut(name, seconds);
      // A write that was sent continues.
      const writes = (definition?.needs ?? []).length > 0;
      clock.start(seconds * 1000, () => refuse(writes ? refusals.outcomeUnknown(late) : late));
      signal.addEventListener('abort', gone, { once: true });
      const running = next.handle().subscribe(subscriber);
      return () => {
        clock.stop();
        signal.removeEventListener('abort', gone);
        running.unsubscribe();
      };
    });
  }
}

/**
 * Adds the code of an application's tool error, which programs use to distinguish errors. Texts of built-in tools are
 * fixed.
 */
const withCode = (refusal: Refusal): Refusal => ({ ...refusal, wordsOnly: false });

/** Serialises the result once, within the size limit, and searches it for the operator's canaries. */
@Injectable()
export class ResultInterceptor implements NestInterceptor {
  private readonly canaries = new PolicyCache(({ switches }) =>
    compileCanaries(switches.promptInjectionCanaries),
  );

  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly events: EventEmitter2,
  ) {}

  intercept(host: ExecutionContext, next: CallHandler): Observable<ToolOutcome> {
    return next.handle().pipe(map((data) => this.outcome(data, host)));
  }

  private outcome(data: unknown, host: ExecutionContext): ToolOutcome {
    const { name, definition, context } = toolExecutionOf(host);
    const policy = this.policies.of(context.agent);
    // Rows of data can be left out. Content is sent whole or not at all.
    const content = data instanceof ToolContent ? data : null;
    const fitted = content
      ? fitToSize('', { blocks: content.blocks, data: content.data })
      : fitToSize(name, data, undefined, definition && declaredNames(definition.inputSchema));
    if ('gate' in fitted) return { ok: false, refusal: isBuiltInName(name) ? fitted : withCode(fitted) };
    const phrase = this.canaries.of(policy)(fitted.text);
    if (phrase !== null) {
      this.announceCanary(phrase, host);
      if (policy.switches.canaryAction === 'refuse')
        throw new Refused(refusals.securityBlocked('canary', `canary: ${phrase}`));
    }
    const declared = definition?.outputSchema !== undefined;
    if (content) {
      return {
        ok: true,
        data: content.data ?? null,
        text: fitted.text,
        structured: declared && content.data !== undefined,
        blocks: content.blocks,
      };
    }
    return { ok: true, data: fitted.data, text: fitted.text, structured: fitted.structured && declared };
  }

  private announceCanary(phrase: string, host: ExecutionContext): void {
    const execution = toolExecutionOf(host);
    const { name: tool, context, args } = execution;
    execution.flag(phrase);
    const className = (args as { class_name?: unknown } | null)?.class_name;
    this.events.emit('parse.agent.prompt_injection_detected', {
      tool,
      phrase,
      agent_id: context.agent.agentId,
      ...(typeof className === 'string' && { class_name: className }),
    });
  }
}

/** Default number of concurrent calls of one principal. */
const DEFAULT_RUNNING_CALLS = 20;
/** Number of calls that wait per running call: it admits a burst of a normal client and refuses a flood. */
const WAITING_FOR_EACH = 2;
/** Milliseconds that a call waits for another call of its principal to end. */
const TIMEOUT = 10_000;

export interface RunningCallsOptions {
  /** Concurrent calls of one principal; null: unbounded. Default 20. */
  readonly perPrincipal?: number | null;
  /** Milliseconds that an additional call waits. Default 10,000. */
  readonly patience?: number;
}

/**
 * Limits the concurrent calls of one principal in this process, so that its slow calls do not block other principals.
 * Twice as many calls wait for an earlier one to end; further calls are refused. A nested call uses the slot of the
 * outer call.
 */
export class RunningCalls {
  private readonly turns: FairQueue | null;
  private readonly limit: number;

  constructor({ perPrincipal = DEFAULT_RUNNING_CALLS, patience = TIMEOUT }: RunningCallsOptions = {}) {
    this.limit = perPrincipal ?? Infinity;
    this.turns =
      perPrincipal === null
        ? null
        : new FairQueue({
            atOnce: Infinity,
            perKey: perPrincipal,
            waitingPerKey: WAITING_FOR_EACH * perPrincipal,
            patience,
          });
  }

  /** @returns a function that releases the slot; it may be called more than once. @throws Refused */
  async begin({ agent, signal, background }: RequestContext): Promise<() => void> {
    if (!this.turns || agent.depth > 0 || background === 'running') return () => undefined;
    try {
      return await this.turns.turn(agent.principal, signal);
    } catch (error) {
      if (error instanceof NoCapacityError)
        throw new Refused(refusals.tooManyRunning(this.limit, retryAfter()));
      if (signal.aborted) throw new Refused(refusals.cancelled(cancelReason(signal)));
      throw error;
    }
  }
}

/** Seconds, spread randomly over calls that are refused together. */
const retryAfter = () => 1 + Math.random() * 4;

/** Outermost interceptor: a call that waits for approval or that a gate refused does not count as running. */
@Injectable()
export class RunningCallsInterceptor implements NestInterceptor {
  constructor(private readonly running: RunningCalls) {}

  intercept(host: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { context } = toolExecutionOf(host);
    return defer(() => this.running.begin(context)).pipe(
      mergeMap((end) => next.handle().pipe(finalize(end))),
    );
  }
}
