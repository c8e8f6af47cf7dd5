import { Inject, Injectable } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import {
  FairQueue,
  NoCapacityError,
  type Refusal,
  refusals,
  Refused,
  type RequestContext,
  whenAborted,
} from '#core';
import { Policies, PolicyCache } from '#policy';
import {
  compileCanaries,
  fitToSize,
  isBuiltInName,
  outcomeOf,
  resultText,
  textBytes,
  ToolContent,
  type ToolDefinition,
  type ToolOutcome,
  withNotes,
} from '#tools';
import { CallJournal, failedRun, refusalByProtocol } from './call-journal.js';
import { DataBudgets } from './data-budgets.js';
import { cancelReason } from './guards.js';
import {
  after,
  type Awaitable,
  type Interceptor,
  type ToolRun,
  ContinuesAsTask,
  RUN_HANDED_OVER,
} from './tool-run.js';

/** Records the outcome of every call, refusals by guards and calls that end in a protocol error included. */
@Injectable()
export class AuditInterceptor implements Interceptor {
  constructor(private readonly journal: CallJournal) {}

  intercept(run: ToolRun, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
    return after(
      next,
      (outcome) => this.recorded(run, outcome),
      (error) => this.failed(run, error),
    );
  }

  private recorded(run: ToolRun, outcome: ToolOutcome): Awaitable<ToolOutcome> {
    if (run.isCancelled && run.context.signal.reason === RUN_HANDED_OVER) return outcome;
    const kept = this.record(run, outcome);
    return kept ? onceKept(kept, run, outcome) : outcome;
  }

  /** @throws the error */
  private failed(run: ToolRun, error: unknown): never {
    if (error instanceof ContinuesAsTask) error.approver = run.approver;
    const refusal = refusalByProtocol(error);
    if (refusal) {
      run.error = error;
      // The error itself is the answer.
      this.record(run, { ok: false, refusal })?.catch(() => undefined);
    }
    throw error;
  }

  private record(run: ToolRun, outcome: ToolOutcome): Promise<void> | undefined {
    const { name: tool, args, context, observed } = run;
    const milliseconds = performance.now() - run.started;
    return this.journal.record({ tool, args, context, outcome, milliseconds, notes: run, observed });
  }
}

/** Withholds a result that has no audit record. A call that a guard refused has no result to withhold. */
async function onceKept(kept: Promise<void>, run: ToolRun, outcome: ToolOutcome): Promise<ToolOutcome> {
  try {
    await kept;
    return outcome;
  } catch {
    if (!run.begun) return outcome;
    return { ok: false, refusal: refusals.auditWithheld(run.name, mayHaveWritten(run.definition)) };
  }
}

/** Only a tool that declares writes can change data. A tool of a higher tier may write by other means. */
function mayHaveWritten(tool: ToolDefinition | undefined): boolean {
  return tool?.permission !== 'readonly' || (tool.needs?.length ?? 0) > 0;
}

/** Charges the data use of a call before its answer, whatever the outcome is, so that the next call includes it. */
@Injectable()
export class ChargeInterceptor implements Interceptor {
  constructor(private readonly budgets: DataBudgets) {}

  intercept(run: ToolRun, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
    return after(
      next,
      (outcome) => this.charged(run, outcome),
      (error) => this.failed(run, error),
    );
  }

  private charged(run: ToolRun, outcome: ToolOutcome): Awaitable<ToolOutcome> {
    const charged = this.charge(run, outcome.ok ? textBytes(outcome) : 0);
    return charged ? charged.then(() => outcome) : outcome;
  }

  /** @throws the error */
  private failed(run: ToolRun, error: unknown): Promise<never> {
    const charged = this.charge(run, 0);
    if (!charged) throw error;
    return charged.then(() => {
      throw error;
    });
  }

  private charge(run: ToolRun, bytes: number): Promise<void> | undefined {
    run.use = run.meter.settle(bytes);
    return run.budgeted ? this.budgets.charge(run.budgeted, run.use) : undefined;
  }
}

/** Converts errors of guards, interceptors and the handler into an outcome. */
@Injectable()
export class OutcomeInterceptor implements Interceptor {
  intercept(run: ToolRun, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
    return after(
      next,
      (outcome) => (outcome.ok ? outcome : refused(run, outcome.refusal)),
      (thrown) => {
        const { refusal, error } = failedRun(thrown, run.name);
        run.error = error;
        return refused(run, refusal);
      },
    );
  }
}

function refused({ sources, context }: ToolRun, refusal: Refusal): ToolOutcome {
  const { body, message, code } = refusal;
  if (!body) return { ok: false, refusal };
  const { prettyText } = sources.policies.of(context.agent).switches;
  const shown = { success: false, error: message, error_code: code, ...body };
  return { ok: false, refusal, text: resultText(shown, prettyText) };
}

/** Default number of concurrent calls of one principal. */
const DEFAULT_RUNNING_CALLS = 20;
/** Number of calls that wait per running call: it admits a burst of a normal client and refuses a flood. */
const WAITING_FOR_EACH = 2;
/** Milliseconds that a call waits for another call of its principal to end. */
const TIMEOUT = 10_000;

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
    { perPrincipal = DEFAULT_RUNNING_CALLS, timeout = TIMEOUT }: RunningCallsOptions,
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

  /** @returns a function that releases the slot, where one is free now; null where the call has to wait */
  beginNow({ agent, background }: RequestContext): (() => void) | null {
    if (!this.turns || agent.depth > 0 || background === 'running') return NO_SLOT;
    return this.turns.turnNow(agent.principal);
  }

  /** @returns a function that releases the slot; it may be called more than once. @throws Refused */
  async begin({ agent, signal, background }: RequestContext): Promise<() => void> {
    if (!this.turns || agent.depth > 0 || background === 'running') return NO_SLOT;
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

const NO_SLOT = (): void => undefined;

/** Seconds, spread randomly over calls that are refused together. */
const retryAfter = () => 1 + Math.random() * 4;

/** Takes a slot of the principal: a call that waits for approval or that a guard refused does not count as running. */
@Injectable()
export class RunningCallsInterceptor implements Interceptor {
  constructor(private readonly running: RunningCalls) {}

  intercept({ context }: ToolRun, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
    const end = this.running.beginNow(context);
    return end ? within(end, next) : this.running.begin(context).then((begun) => within(begun, next));
  }
}

function within(end: () => void, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
  return after(
    next,
    (outcome) => {
      end();
      return outcome;
    },
    (error) => {
      end();
      throw error;
    },
  );
}

/**
 * Aborts the run and its database operation when the caller disconnects or the tool exceeds its timeout. Checkpoint 2:
 * a result that arrives later is discarded.
 */
@Injectable()
export class DeadlineInterceptor implements Interceptor {
  intercept(run: ToolRun, next: () => Awaitable<ToolOutcome>): Awaitable<ToolOutcome> {
    if (run.isCancelled) throw cancelled(run);
    const outcome = next();
    if (!(outcome instanceof Promise)) return outcome;
    return new Promise((resolve, reject) => {
      const { context, clock, definition } = run;
      const end = () => {
        clock.stop();
        removeListener();
      };
      const refuse = (refused: Refused) => {
        end();
        reject(refused);
        run.abort(refused.refusal.code);
      };
      const gone = () => refuse(new Refused(refusals.cancelled(cancelReason(context.signal))));
      const late = () => {
        const refusal = refusals.toolTimedOut(run.name, run.seconds);
        // A write that was sent continues.
        const writes = (definition?.needs ?? []).length > 0;
        refuse(new Refused(writes ? refusals.outcomeUnknown(refusal) : refusal));
      };
      const removeListener = whenAborted(context, gone);
      outcome.then(
        (ended) => {
          end();
          resolve(ended);
        },
        (error: unknown) => {
          end();
          reject(error as Error);
        },
      );
      if (run.isCancelled) return gone();
      clock.start(run.seconds * 1000, late);
    });
  }
}

/** A call that was cancelled before its handler ran. */
function cancelled(run: ToolRun): Refused {
  run.abort('cancelled');
  return new Refused(refusals.cancelled(cancelReason(run.context.signal)));
}

/**
 * Adds the code of an application's tool error, which programs use to distinguish errors. Texts of built-in tools are
 * fixed.
 */
const withCode = (refusal: Refusal): Refusal => ({ ...refusal, wordsOnly: false });

/** Serialises the result of the handler once, within the size limit, and searches it for the operator's canaries. */
@Injectable()
export class ResultInterceptor implements Interceptor<unknown> {
  private readonly canaries = new PolicyCache(({ switches }) =>
    compileCanaries(switches.promptInjectionCanaries),
  );

  constructor(
    @Inject(Policies) private readonly policies: Pick<Policies, 'of'>,
    private readonly events: EventEmitter2,
  ) {}

  intercept(run: ToolRun, next: () => Awaitable<unknown>): Awaitable<ToolOutcome> {
    const data = next();
    return data instanceof Promise ? data.then((held) => this.outcome(held, run)) : this.outcome(data, run);
  }

  private outcome(returned: unknown, run: ToolRun): ToolOutcome {
    const { name, definition, context } = run;
    const data = withNotes(returned, run.notes);
    const policy = this.policies.of(context.agent);
    const pretty = policy.switches.prettyText;
    // Rows of data can be left out. Content is sent whole or not at all.
    const content = data instanceof ToolContent ? data : null;
    const fitted = content
      ? fitToSize('', { blocks: content.blocks, data: content.data }, { pretty })
      : fitToSize(name, data, { pretty, inputSchema: definition?.inputSchema });
    if ('gate' in fitted) return { ok: false, refusal: isBuiltInName(name) ? fitted : withCode(fitted) };
    // Only a search needs the text of rows that were written as they were read.
    const searched = policy.switches.promptInjectionCanaries.length > 0;
    const phrase = searched ? this.canaries.of(policy)(fitted.text) : null;
    if (phrase !== null) {
      this.announceCanary(phrase, run);
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
    return outcomeOf(fitted, declared);
  }

  private announceCanary(phrase: string, run: ToolRun): void {
    const { name: tool, context, args } = run;
    run.phrase = phrase;
    const className = (args as { class_name?: unknown } | null)?.class_name;
    this.events.emit('parse.agent.prompt_injection_detected', {
      tool,
      phrase,
      agent_id: context.agent.agentId,
      ...(typeof className === 'string' && { class_name: className }),
    });
  }
}
