import {
  type CanActivate,
  type FactoryProvider,
  Inject,
  Injectable,
  type NestInterceptor,
  type Provider,
} from '@nestjs/common';
import { lastValueFrom, Observable, type Subscriber } from 'rxjs';
import { type CodeCaller, type McpRequest, tierCovers, toRequest, refuse } from '#core';
import { GovernedRecordsSource, GovernedSearchSource, GovernedWritesSource } from '#data';
import { Policies } from '#policy';
import {
  CallableMethods,
  effectiveTier,
  type RegisteredTool,
  type ToolDefinition,
  type ToolOutcome,
  ToolRegistry,
  ToolRunner,
} from '#tools';
import {
  ApplicationPlace,
  type ApplicationSteps,
  GuardsAfter,
  GuardsBefore,
  InterceptorsAfter,
  InterceptorsBefore,
} from './application-steps.js';
import { DataBudgets } from './call-limits.js';
import {
  ApprovalGuard,
  ArgumentsGuard,
  AuditGuard,
  BudgetGuard,
  CancellationGuard,
  EnvironmentGuard,
  RateLimitGuard,
  SuspensionGuard,
  ToolGuard,
} from './guards.js';
import {
  AuditInterceptor,
  DeadlineInterceptor,
  OutcomeInterceptor,
  ResultInterceptor,
  RunningCallsInterceptor,
  TaskInterceptor,
} from './interceptors.js';
import { AfterCallInterceptor, BeforeCallInterceptor } from './call-journal.js';
import { ToolListings } from './tool-listings.js';
import { type Awaitable, type CallSources, ParleyToolCall } from './tool-call.js';

/**
 * The order of every tool call (docs/contributing/life-of-a-call.md): this list is what runs. An interceptor runs around
 * everything behind it, refusals of guards included. Enhancers that a tool declares run inside the handler, which comes last.
 */
export const TOOL_PIPELINE = [
  AuditInterceptor,
  OutcomeInterceptor,
  SuspensionGuard,
  InterceptorsBefore,
  GuardsBefore,
  RateLimitGuard,
  AuditGuard,
  ToolGuard,
  EnvironmentGuard,
  BudgetGuard,
  ArgumentsGuard,
  GuardsAfter,
  ApprovalGuard,
  BeforeCallInterceptor,
  CancellationGuard,
  TaskInterceptor,
  RunningCallsInterceptor,
  AfterCallInterceptor,
  DeadlineInterceptor,
  ResultInterceptor,
  InterceptorsAfter,
] as const;

/** Nest's text for a guard that answers false. */
const FORBIDDEN = 'Forbidden resource';

type Step = CanActivate | NestInterceptor;

const NO_STEPS = { before: [], after: [] };

/** A step as its kind, so that no call has to look for it. */
type Placed =
  | { readonly guard: CanActivate; readonly name: string; readonly interceptor: null }
  | { readonly guard: null; readonly interceptor: NestInterceptor };

function toPlaced(step: Step): Placed {
  if ('intercept' in step) return { guard: null, interceptor: step };
  return { guard: step, name: 'gate' in step ? String(step.gate) : step.constructor.name, interceptor: null };
}

/** Runs a call through the list. It waits only where a step does. */
export class ToolPipeline {
  private steps: readonly Placed[] = [];

  /** @param order the last interceptor makes the outcome from the result of the handler */
  constructor(private readonly order: readonly (Step | ApplicationPlace)[]) {
    this.install({ guards: NO_STEPS, interceptors: NO_STEPS });
  }

  /** Puts the steps of an application in their places, instead of those that were there. For the start: no call may run. */
  install(application: ApplicationSteps): void {
    this.steps = this.order
      .flatMap((step) => (step instanceof ApplicationPlace ? step.choose(application) : step))
      .map(toPlaced);
  }

  /** @throws errors that the call must not answer (`toFailedRun`) */
  run(call: ParleyToolCall): Promise<ToolOutcome> {
    return lastValueFrom(this.from(0, call)) as Promise<ToolOutcome>;
  }

  /** The rest of the list, which runs when it is subscribed to. */
  private from(first: number, call: ParleyToolCall): Observable<unknown> {
    return new Observable((subscriber) => this.enter(first, call, subscriber));
  }

  private enter(first: number, call: ParleyToolCall, subscriber: Subscriber<unknown>): void {
    const { steps } = this;
    // An interceptor further out has ended the call.
    if (subscriber.closed) return;
    try {
      for (let at = first; at < steps.length; at += 1) {
        const step = steps[at] as Placed;
        if (step.interceptor) {
          const answer = step.interceptor.intercept(call, { handle: () => this.from(at + 1, call) });
          if ('then' in answer) emitWhenReady(answer, subscriber);
          else emitLast(answer, subscriber);
          return;
        }
        const admitted = step.guard.canActivate(call);
        if (typeof admitted !== 'boolean') {
          const later = 'then' in admitted ? admitted : lastValueFrom(admitted);
          later
            .then((verdict) => pass(step, verdict, call))
            .then(
              () => this.enter(at + 1, call, subscriber),
              (error: unknown) => subscriber.error(error),
            );
          return;
        }
        pass(step, admitted, call);
      }
      emitResult(handle(call), subscriber);
    } catch (error) {
      subscriber.error(error);
    }
  }
}

/** @throws Refused for a guard that does not admit the call */
function pass({ name }: Placed & { interceptor: null }, admitted: boolean, call: ParleyToolCall): void {
  if (!admitted) throw refuse.accessDenied('application', FORBIDDEN);
  call.trace?.notePassed(name);
}

/** Of an interceptor the last value counts. One that emits none has the result null. */
function emitLast(answer: Observable<unknown>, subscriber: Subscriber<unknown>): void {
  let last: unknown = null;
  subscriber.add(
    answer.subscribe({
      next: (value) => {
        last = value;
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => {
        subscriber.next(last);
        subscriber.complete();
      },
    }),
  );
}

function emitWhenReady(later: Promise<Observable<unknown>>, subscriber: Subscriber<unknown>): void {
  later.then(
    (answer) => emitLast(answer, subscriber),
    (error: unknown) => subscriber.error(error),
  );
}

function emitResult(returned: unknown, subscriber: Subscriber<unknown>): void {
  if (isThenable(returned)) {
    returned.then(
      (result) => emitResult(result, subscriber),
      (error: unknown) => subscriber.error(error),
    );
    return;
  }
  subscriber.next(returned);
  subscriber.complete();
}

function handle(call: ParleyToolCall): unknown {
  const { observed, handler } = call;
  const runHandler = () => handler(call.args as Record<string, unknown>, call);
  return observed ? observed.within(runHandler) : runHandler();
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  );
}

const pipeline: FactoryProvider<ToolPipeline> = {
  provide: ToolPipeline,
  useFactory: (...steps: (Step | ApplicationPlace)[]) => new ToolPipeline(steps),
  inject: [...TOOL_PIPELINE],
};

/** What a run needs of a tool. */
export type RunnableTool = Pick<RegisteredTool, 'definition' | 'handler' | 'declared' | 'refuseUnknown'>;

/**
 * Runs tools through the pipeline and converts every outcome, including refusals and errors, into one value and one
 * audit record.
 */
@Injectable()
export class ParleyToolRunner extends ToolRunner {
  private readonly sources: CallSources;

  constructor(
    @Inject(Policies) policies: Pick<Policies, 'of'>,
    records: GovernedRecordsSource,
    search: GovernedSearchSource,
    writes: GovernedWritesSource,
    private readonly registry: ToolRegistry,
    private readonly pipeline: ToolPipeline,
    private readonly listings: ToolListings,
    private readonly budgets: DataBudgets,
    private readonly methods: CallableMethods,
  ) {
    super();
    this.sources = { policies, records, search, writes };
  }

  list(caller: CodeCaller): readonly ToolDefinition[] {
    return this.listings.of(toRequest(caller).agent);
  }

  override listTools(caller: CodeCaller): Awaitable<readonly ToolDefinition[]> {
    return this.listings.listTools(toRequest(caller).agent);
  }

  find(name: string): ToolDefinition | undefined {
    return this.registry.get(name)?.definition;
  }

  override permits(caller: CodeCaller, name: string, args: unknown): boolean {
    const { agent } = toRequest(caller);
    const tool = this.listings.of(agent).find((listed) => listed.name === name);
    return tool !== undefined && tierCovers(agent.permissions, effectiveTier(tool, args, this.methods));
  }

  async run(name: string, args: unknown, caller: CodeCaller): Promise<ToolOutcome> {
    return this.runTool(name, this.registry.get(name), args, toRequest(caller));
  }

  /** Runs code that no listing shows, such as a route of an application, as a tool with this definition runs. */
  runUnlisted(tool: RunnableTool, args: unknown, context: McpRequest): Promise<ToolOutcome> {
    return this.runTool(tool.definition.name, tool, args, context);
  }

  private async runTool(
    name: string,
    tool: RunnableTool | undefined,
    args: unknown,
    request: McpRequest,
  ): Promise<ToolOutcome> {
    const { sources, budgets, pipeline } = this;
    const observed = request.telemetry?.tool(name);
    try {
      const budgeted = budgets.open(request.agent);
      return await pipeline.run(
        new ParleyToolCall(request, { name, args, tool, sources, budgeted, observed }),
      );
    } finally {
      // A run without a record has ended as well.
      observed?.ends();
    }
  }
}

/** Every guard and interceptor, and the pipeline that runs them in this order. */
export const PIPELINE_PROVIDERS: readonly Provider[] = [ToolListings, ...TOOL_PIPELINE, pipeline];
