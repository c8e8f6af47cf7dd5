import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { defer, finalize, map, mergeMap, Observable } from 'rxjs';
import { type CallContext, FairQueue, NoCapacityError, type Refusal, refusals, Refused } from '#core';
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
 * Ends the run at once, and with it the database operation, when the caller goes away or the tool's time is up.
 * Checkpoint 2: a result that comes after that is discarded.
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
      // A write that was sent goes on.
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

/** Programs tell the failures of an application's tools by their code; for built-in tools the words are fixed. */
const withCode = (refusal: Refusal): Refusal => ({ ...refusal, wordsOnly: false });

/** Serialises once, within the size limit, and looks for the operator's canaries in what would be sent. */
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
    // Rows can be left out of data; content is sent whole or not at all.
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

/** Calls of a principal that run at once unless the configuration says otherwise. */
const DEFAULT_RUNNING_CALLS = 20;
/** Calls that wait, for each that may run: a burst of a well-behaved client is served, a flood is not. */
const WAITING_FOR_EACH = 2;
/** Milliseconds that a call waits for one of its principal's to end. */
const PATIENCE = 10_000;

export interface RunningCallsOptions {
  /** Calls of one principal that run at once; null: unbounded. Default 20. */
  readonly perPrincipal?: number | null;
  /** Milliseconds that a further one waits. Default 10,000. */
  readonly patience?: number;
}

/**
 * Bounds how many calls of one principal run at the same time in this process, so that slow calls of one leave room for those
 * of others. Twice as many wait a while for an earlier one to end; more are refused. A call inside a call runs in the place
 * of the outer one.
 */
export class RunningCalls {
  private readonly turns: FairQueue | null;
  private readonly limit: number;

  constructor({ perPrincipal = DEFAULT_RUNNING_CALLS, patience = PATIENCE }: RunningCallsOptions = {}) {
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

  /** @returns ends the call's turn; may be called more than once. @throws Refused */
  async begin({ agent, signal, background }: CallContext): Promise<() => void> {
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

/** Seconds, not the same for all that are refused together. */
const retryAfter = () => 1 + Math.random() * 4;

/** Around everything else of a run: what waits for approval or was refused by a gate does not run. */
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
