import { type CallHandler, Inject, Injectable, Logger, type NestInterceptor } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { finalize, map, Observable, tap } from 'rxjs';
import {
  AGENT_SUSPENDED,
  FairQueue,
  NoCapacityError,
  type Refusal,
  refusals,
  Refused,
  type McpRequest,
  toSentCode,
  whenAborted,
  refuse,
} from '#core';
import { PolicyCache } from '#policy';
import { SuspendedAgents } from '#state';
import {
  compileCanaries,
  fitToSize,
  isBuiltInName,
  resultText,
  ToolContent,
  type ToolOutcome,
  type ToolSwitches,
  withNotes,
} from '#tools';
import { CallJournal, toFailedRun, refusalByProtocol } from './call-journal.js';
import { DataBudgets, ResultLimit } from './call-limits.js';
import { faultReport, tasksNotDeclared } from '../protocol.js';
import { type Awaitable, ContinuesAsTask, type ParleyToolCall } from './tool-call.js';

/** What takes the place of the outcome or the error of the steps behind an interceptor, at once or later. */
interface Settling {
  readonly outcome: (outcome: ToolOutcome) => Awaitable<ToolOutcome>;
  /** @throws the error, or another one */
  readonly error: (error: unknown) => Awaitable<ToolOutcome>;
}

/** Runs the steps behind an interceptor, which have one outcome or an error. */
function settle(next: CallHandler<ToolOutcome>, settling: Settling): Observable<ToolOutcome> {
  return new Observable((answer) => {
    const emit = (outcome: ToolOutcome) => {
      answer.next(outcome);
      answer.complete();
    };
    const end = <Ended>(settled: (ended: Ended) => Awaitable<ToolOutcome>, ended: Ended) => {
      try {
        const outcome = settled(ended);
        if (outcome instanceof Promise) outcome.then(emit, (error: unknown) => answer.error(error));
        else emit(outcome);
      } catch (error) {
        answer.error(error);
      }
    };
    return next.handle().subscribe({
      next: (outcome) => end(settling.outcome, outcome),
      error: (error: unknown) => end(settling.error, error),
    });
  });
}

/**
 * Charges the data use of a call to its budgets and records its outcome, before the answer and whatever the outcome is: also
 * refusals by guards and calls that end in a protocol error.
 */
@Injectable()
export class AuditInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  constructor(
    private readonly journal: CallJournal,
    private readonly budgets: DataBudgets,
  ) {}

  intercept(call: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    return settle(next, {
      outcome: (outcome) =>
        this.charge(call, outcome.ok ? Buffer.byteLength(outcome.text) : 0, () => {
          const kept = this.record(call, outcome);
          return kept ? withholdUnlessKept(kept, call, outcome) : outcome;
        }),
      error: (error) => this.charge(call, 0, () => this.fail(call, error)),
    });
  }

  /** The next call of the budgets includes the use of this one. @param then runs after that */
  private charge(
    call: ParleyToolCall,
    bytes: number,
    then: () => Awaitable<ToolOutcome>,
  ): Awaitable<ToolOutcome> {
    call.use = call.ownMeter.settle(bytes);
    return call.budgeted ? this.budgets.charge(call.budgeted, call.use).then(then) : then();
  }

  /** @throws the error */
  private fail(call: ParleyToolCall, error: unknown): never {
    if (error instanceof ContinuesAsTask) error.approval = call.approval;
    const refusal = refusalByProtocol(error);
    if (refusal) {
      call.error = error;
      // The error itself is the answer.
      this.record(call, { ok: false, refusal })?.catch(() => undefined);
    }
    throw error;
  }

  private record(call: ParleyToolCall, outcome: ToolOutcome): Promise<void> | undefined {
    const { claimEnd } = call.request;
    if (!claimEnd) return this.write(call, outcome);
    return claimEnd().then((isEnd) => (isEnd ? this.write(call, outcome) : undefined));
  }

  private write(call: ParleyToolCall, outcome: ToolOutcome): Promise<void> | undefined {
    const { name: tool, args, request: context, observed } = call;
    const milliseconds = performance.now() - call.started - call.clock.waited;
    return this.journal.record({ tool, args, context, outcome, milliseconds, notes: call, observed });
  }
}

/** Withholds a result that has no audit record. A call that a guard refused has no result to withhold. */
async function withholdUnlessKept(
  kept: Promise<void>,
  call: ParleyToolCall,
  outcome: ToolOutcome,
): Promise<ToolOutcome> {
  try {
    await kept;
    return outcome;
  } catch {
    if (!call.begun) return outcome;
    return { ok: false, refusal: refusals.auditWithheld(call.name, call.mayHaveWritten) };
  }
}

/** A refusal of the result must not be read as one of the call, which the agent would make again. */
const afterWrite = (refusal: Refusal): Refusal => ({
  ...refusal,
  message: `${refusal.message} The call has run, and what it changed stays changed: look before you repeat it`,
});

/** Converts errors of guards, interceptors and the handler into an outcome. */
@Injectable()
export class OutcomeInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  private readonly logger = new Logger('Tools');

  intercept(call: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    return settle(next, {
      outcome: (outcome) => (outcome.ok ? outcome : toAnswer(outcome.refusal, call.switches)),
      error: (thrown) => {
        const { refusal, error } = toFailedRun(thrown, call.name);
        call.error = error;
        if (refusal.code === 'internal_error' && !(error instanceof Refused))
          this.logger.error(faultReport(`'${call.name}' failed:`, error));
        const ended = refusal.code === 'cancelled' && call.request.aborted;
        return toAnswer(ended ? refusals.cancelled(call.request.signal.reason) : refusal, call.switches);
      },
    });
  }
}

function toAnswer(refusal: Refusal, { prettyText }: ToolSwitches): ToolOutcome {
  const { body, message, code } = refusal;
  if (!body) return { ok: false, refusal };
  const shown = { success: false, error: message, error_code: toSentCode(code), ...body };
  return { ok: false, refusal, text: resultText(shown, prettyText) };
}

/** A call that continues as a task starts the task here, after every guard. */
@Injectable()
export class TaskInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  readonly gate = 'task';

  intercept(call: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    const { definition, request } = call;
    if (request.background !== 'running') {
      if (definition?.task === 'required' && request.background === undefined) throw tasksNotDeclared();
      if (call.beginsTask) throw new ContinuesAsTask();
    }
    call.trace?.notePassed(this.gate);
    return next.handle();
  }
}

/** Default number of concurrent calls of one principal. */
const DEFAULT_RUNNING_CALLS = 20;
/** Number of calls that wait per running call: it admits a burst of a normal client and refuses a flood. */
const WAITING_FOR_EACH = 2;
/** Milliseconds that a call waits for another call of its principal to end. */
const CALLBACK_TIMEOUT = 10_000;

/** Injection token of `RunningCallsOptions`. */
export const RUNNING_CALLS_OPTIONS = Symbol('options of running calls');

export interface RunningCallsOptions {
  /** Concurrent calls of one principal; null: unbounded. Default 20. */
  readonly perPrincipal?: number | null;
  /** Milliseconds that an additional call waits. Default 10,000. */
  readonly timeout?: number;
}

/**
 * Limits the concurrent calls of one principal in this process, so that its slow calls do not block other principals.
 * Twice as many calls wait for an earlier one to end; further calls are refused. A nested call uses the slot of the
 * outer call.
 */
@Injectable()
export class RunningCalls {
  private readonly turns: FairQueue | null;
  private readonly limit: number;

  constructor(
    @Inject(RUNNING_CALLS_OPTIONS)
    { perPrincipal = DEFAULT_RUNNING_CALLS, timeout = CALLBACK_TIMEOUT }: RunningCallsOptions,
  ) {
    this.limit = perPrincipal ?? Infinity;
    this.turns =
      perPrincipal === null
        ? null
        : new FairQueue({
            atOnce: Infinity,
            perKey: perPrincipal,
            waitingPerKey: WAITING_FOR_EACH * perPrincipal,
            timeout,
          });
  }

  /**
   * Takes a slot, at once where one is free.
   * @returns a function that releases the slot; it may be called more than once. @throws Refused
   */
  begin(request: McpRequest): Awaitable<() => void> {
    const { turns } = this;
    if (!turns || request.agent.depth > 0 || request.background === 'running') return NO_SLOT;
    return turns.turnNow(request.agent.principal) ?? this.waitForSlot(turns, request);
  }

  private async waitForSlot(turns: FairQueue, { agent, signal }: McpRequest): Promise<() => void> {
    try {
      return await turns.turn(agent.principal, signal);
    } catch (error) {
      if (error instanceof NoCapacityError) throw refuse.tooManyRunning(this.limit, retryAfter());
      if (signal.aborted) throw refuse.cancelled(signal.reason);
      throw error;
    }
  }
}

const NO_SLOT = (): void => undefined;

/** Seconds, spread randomly over calls that are refused together. */
const retryAfter = () => 1 + Math.random() * 4;

/** Takes a slot of the principal: a call that waits for approval or that a guard refused does not count as running. */
@Injectable()
export class RunningCallsInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  constructor(private readonly running: RunningCalls) {}

  intercept({ request }: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    const end = this.running.begin(request);
    if (!(end instanceof Promise)) return next.handle().pipe(finalize(end));
    return new Observable((answer) => {
      end.then(
        (begun) => {
          // An interceptor further out may have ended the call while it waited.
          if (answer.closed) begun();
          else answer.add(next.handle().pipe(finalize(begun)).subscribe(answer));
        },
        (error: unknown) => answer.error(error),
      );
    });
  }
}

/**
 * Aborts the run and its database operation when the caller disconnects, its agent is suspended, also while it waited for an
 * approval, or the tool exceeds its timeout. Checkpoint 2: a result that arrives later is discarded.
 */
@Injectable()
export class DeadlineInterceptor implements NestInterceptor<ToolOutcome, ToolOutcome> {
  constructor(private readonly suspended: SuspendedAgents) {}

  intercept(call: ParleyToolCall, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    const { agent, request, clock, definition } = call;
    const { suspended } = this;
    return new Observable((answer) => {
      let isOver = false;
      const end = () => void (isOver = true);
      const endWith = (refused: Refused) => {
        end();
        // The caller is answered first: what the abort does is of no interest to it.
        answer.error(refused);
        call.abort(refused.refusal.code);
      };
      const refuseGone = () => endWith(refuse.cancelled(request.signal.reason));
      const refuseSuspended = () => endWith(refuse.cancelled(AGENT_SUSPENDED));
      if (request.aborted) return refuseGone();
      if (suspended.isSuspended(agent)) return refuseSuspended();
      const running = next
        .handle()
        .pipe(tap({ complete: end, error: end }))
        .subscribe(answer);
      if (answer.closed) return undefined;
      const removeListener = whenAborted(request, refuseGone);
      answer.add(suspended.changes.subscribe(() => suspended.isSuspended(agent) && refuseSuspended()));
      answer.add(() => {
        clock.stop();
        removeListener();
        // An interceptor further out has ended the call, by a timeout of its own for instance.
        if (!isOver) call.abort('cancelled');
      });
      if (request.aborted) return refuseGone();
      clock.start(call.seconds * 1000, () => {
        // A write that was sent continues.
        const writes = call.mayHaveWritten;
        const work = writes ? 'write' : definition?.use === undefined ? 'other' : 'query';
        const refusal = refusals.toolTimedOut(call.name, call.seconds, work);
        endWith(new Refused(writes ? refusals.outcomeUnknown(refusal) : refusal));
      });
      return running;
    });
  }
}

/**
 * Adds the code of an application's tool error, which programs use to distinguish errors. Texts of built-in tools are
 * fixed.
 */
const withCode = (refusal: Refusal): Refusal => ({ ...refusal, wordsOnly: false });

/** Serialises the result of the handler once, within the size limit, and searches it for the operator's canaries. */
@Injectable()
export class ResultInterceptor implements NestInterceptor<unknown, ToolOutcome> {
  private readonly canaries = new PolicyCache(({ switches }) =>
    compileCanaries(switches.promptInjectionCanaries),
  );

  constructor(
    private readonly events: EventEmitter2,
    private readonly limit: ResultLimit,
  ) {}

  intercept(call: ParleyToolCall, next: CallHandler<unknown>): Observable<ToolOutcome> {
    return next.handle().pipe(map((returned) => this.toOutcome(returned, call)));
  }

  private toOutcome(returned: unknown, call: ParleyToolCall): ToolOutcome {
    const { name, definition, policy } = call;
    const data = withNotes(returned, call.notes);
    const pretty = policy.switches.prettyText;
    const cap = this.limit.for(call.agent);
    // Rows of data can be left out. Content is sent whole or not at all.
    const content = data instanceof ToolContent ? data : null;
    const fitted = content
      ? fitToSize('', { blocks: content.blocks, data: content.data }, { cap, pretty })
      : fitToSize(name, data, { cap, pretty, inputSchema: definition?.inputSchema, args: call.args });
    if ('gate' in fitted) {
      const refusal = isBuiltInName(name) ? fitted : withCode(fitted);
      return { ok: false, refusal: call.mayHaveWritten ? afterWrite(refusal) : refusal };
    }
    // Only a search needs the text of rows that were written as they were read.
    const searched = policy.switches.promptInjectionCanaries.length > 0;
    const phrase = searched ? this.canaries.of(policy)(fitted.text) : null;
    if (phrase !== null) {
      this.announceCanary(phrase, call);
      if (policy.switches.canaryAction === 'refuse')
        throw refuse.securityBlocked('canary', `canary: ${phrase}`);
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
    return { ok: true, data: fitted.data, text: fitted.text, structured: declared && fitted.structured };
  }

  private announceCanary(phrase: string, call: ParleyToolCall): void {
    const { name: tool, agent, args } = call;
    call.phrase = phrase;
    const className = (args as { class_name?: unknown } | null)?.class_name;
    this.events.emit('parse.agent.prompt_injection_detected', {
      tool,
      phrase,
      agent_id: agent.agentId,
      ...(typeof className === 'string' && { class_name: className }),
    });
  }
}
