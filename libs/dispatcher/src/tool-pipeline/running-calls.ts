import { type ExecutionContext, Injectable, type CallHandler, type NestInterceptor } from '@nestjs/common';
import { defer, finalize, mergeMap, type Observable } from 'rxjs';
import { type CallContext, FairTurns, NoTurn, Refused, refusals } from '#agent';
import { cancelReason } from './guards.js';
import { toolExecutionOf } from './tool-execution.js';

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
 * of others. Twice as many wait a while for an earlier one to end; what is more is refused. A call inside a call runs in the place
 * of the outer one.
 */
export class RunningCalls {
  private readonly turns: FairTurns | null;
  private readonly limit: number;

  constructor({ perPrincipal = DEFAULT_RUNNING_CALLS, patience = PATIENCE }: RunningCallsOptions = {}) {
    this.limit = perPrincipal ?? Infinity;
    this.turns =
      perPrincipal === null
        ? null
        : new FairTurns({
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
      if (error instanceof NoTurn) throw new Refused(refusals.tooManyRunning(this.limit, retryAfter()));
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
