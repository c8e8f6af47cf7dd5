import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { catchError, type Observable, tap, throwError } from 'rxjs';
import { Refused } from '#agent';
import type { ToolOutcome } from '#tools';
import { beginsTask } from '../tasks/continues-as-task.js';
import { type AnnouncedCall, ToolCallbacks } from './tool-callbacks.js';
import { toolExecutionOf } from './tool-execution.js';
import type { Gate } from './tool-pipeline.js';

function announced(host: ExecutionContext): AnnouncedCall {
  const { name, args, context } = toolExecutionOf(host);
  return { tool: name, args, agent: context.agent };
}

/** Tells that every gate let the call pass; refuses nothing itself. */
@Injectable()
export class BeforeCallGuard implements Gate {
  readonly gate = 'before_callbacks';

  constructor(private readonly callbacks: ToolCallbacks) {}

  canActivate(host: ExecutionContext): true {
    // Told when the task runs.
    if (!beginsTask(toolExecutionOf(host))) this.callbacks.announceBefore(announced(host));
    return true;
  }
}

/** Outermost around the handler: the call begins here. Tells of the result, and of a cancellation that came after that. */
@Injectable()
export class AfterCallInterceptor implements NestInterceptor {
  constructor(private readonly callbacks: ToolCallbacks) {}

  intercept(host: ExecutionContext, next: CallHandler<ToolOutcome>): Observable<ToolOutcome> {
    toolExecutionOf(host).begin();
    const tell = (outcome: ToolOutcome) => this.callbacks.announceAfter(announced(host), outcome);
    return next.handle().pipe(
      tap((outcome) => {
        if (outcome.ok) tell(outcome);
      }),
      catchError((error: unknown) => {
        if (error instanceof Refused && error.refusal.code === 'cancelled')
          tell({ ok: false, refusal: error.refusal });
        return throwError(() => error);
      }),
    );
  }
}
