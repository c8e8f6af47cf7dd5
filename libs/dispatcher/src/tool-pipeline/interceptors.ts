import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
} from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { map, Observable } from 'rxjs';
import { type Refusal, Refused, refusals } from '#agent';
import { PerPolicy, Policies } from '#policy';
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
  private readonly canaries = new PerPolicy(({ switches }) =>
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
