import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { fromEvent, map, merge, mergeMap, type Observable, take, throwError, timer } from 'rxjs';
import { Refused, refusals } from '#agent';
import type { Policy } from '#policy';
import { type CanaryScan, compileCanaries, fitToSize, type ToolOutcome } from '#tools';
import { cancelReason } from './guards.js';
import { toolExecutionOf } from './tool-execution.js';

/** Ends the run, and with it the database operation, when the tool's time is up. */
@Injectable()
export class TimeoutInterceptor implements NestInterceptor {
  intercept(host: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { definition, name, abort } = toolExecutionOf(host);
    const seconds = definition?.timeout ?? 30;
    const expired = timer(seconds * 1000).pipe(
      mergeMap(() => {
        const refusal = refusals.toolTimedOut(name, seconds);
        abort(refusal.code);
        return throwError(() => new Refused(refusal));
      }),
    );
    return merge(next.handle(), expired).pipe(take(1));
  }
}

/** The caller going away ends the run at once, and a result that comes after it is discarded. */
@Injectable()
export class CancellationInterceptor implements NestInterceptor {
  intercept(host: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { signal } = toolExecutionOf(host).context;
    const refused = () => new Refused(refusals.cancelled(cancelReason(signal)));
    const gone = fromEvent(signal, 'abort').pipe(mergeMap(() => throwError(refused)));
    return merge(next.handle(), gone).pipe(
      take(1),
      map((result) => {
        if (signal.aborted) throw refused();
        return result;
      }),
    );
  }
}

/** Serialises once, within the size limit, and looks for the operator's canaries in what would be sent. */
@Injectable()
export class ResultInterceptor implements NestInterceptor {
  private readonly canaryIn: CanaryScan;

  constructor(
    private readonly policy: Policy,
    private readonly onCanary: (phrase: string, host: ExecutionContext) => void,
  ) {
    this.canaryIn = compileCanaries(policy.switches.promptInjectionCanaries);
  }

  intercept(host: ExecutionContext, next: CallHandler): Observable<ToolOutcome> {
    return next.handle().pipe(map((data) => this.outcome(data, host)));
  }

  private outcome(data: unknown, host: ExecutionContext): ToolOutcome {
    const { name, definition } = toolExecutionOf(host);
    const fitted = fitToSize(name, data);
    if ('gate' in fitted) return { ok: false, refusal: fitted };
    const phrase = this.canaryIn(fitted.text);
    if (phrase !== null) {
      this.onCanary(phrase, host);
      if (this.policy.switches.canaryAction === 'refuse')
        throw new Refused(refusals.securityBlocked('canary', `canary: ${phrase}`));
    }
    return {
      ok: true,
      data: fitted.data,
      text: fitted.text,
      structured: fitted.structured && definition?.outputSchema !== undefined,
    };
  }
}
