import type { ExecutionContext, FactoryProvider, NestInterceptor, Provider, Type } from '@nestjs/common';
import { defer, lastValueFrom, mergeAll, type Observable } from 'rxjs';
import type { ToolHandler, ToolOutcome } from '#tools';
import { AuditStep, BudgetStep, OutcomeStep } from './call-accounts.js';
import {
  ApprovalGuard,
  ArgumentsGuard,
  AuditGuard,
  BudgetGuard,
  CancellationGuard,
  EnvironmentGuard,
  RateLimitGuard,
  TaskGuard,
  ToolGuard,
} from './guards.js';
import { DeadlineInterceptor, ResultInterceptor, RunningCallsInterceptor } from './interceptors.js';
import { AfterCallInterceptor, BeforeCallGuard } from './tool-callbacks.js';
import {
  type CallStep,
  type Gate,
  TOOL_CONTEXT_TYPE,
  type ToolContextArguments,
  type ToolExecution,
} from './tool-execution.js';

/**
 * The order of every tool call (docs/contributing/life-of-a-call.md). These lists are what runs: the steps around
 * everything, outermost first; guards first to last; the interceptors around the handler, outermost first. Enhancers
 * that a tool declares run inside the handler.
 */
export abstract class ToolPipeline {
  abstract readonly steps: readonly CallStep[];
  abstract readonly guards: readonly Gate[];
  abstract readonly interceptors: readonly NestInterceptor[];
}

/** The execution context of guards and interceptors of every call: of type `mcp`, without HTTP, RPC or WebSockets. */
export class ToolHost implements ExecutionContext {
  constructor(
    private readonly args: readonly unknown[],
    private readonly handler: ToolHandler = noHandler,
  ) {}

  getType<T extends string>(): T {
    return TOOL_CONTEXT_TYPE as string as T;
  }

  getArgs<T extends unknown[]>(): T {
    return [...this.args] as T;
  }

  getArgByIndex<T>(index: number): T {
    return this.args[index] as T;
  }

  getHandler(): ToolHandler {
    return this.handler;
  }

  /** Guards of every call run before the class of a tool is known. */
  getClass<T>(): Type<T> {
    return null as never;
  }

  switchToHttp(): never {
    throw new TypeError('a tool call is no HTTP request');
  }

  switchToRpc(): never {
    throw new TypeError('a tool call is no RPC message');
  }

  switchToWs(): never {
    throw new TypeError('a tool call is no WebSocket message');
  }
}

const noHandler: ToolHandler = () => Promise.resolve(null);

/** @throws errors that the call must not answer (`failedRun`) */
export function runThrough(
  pipeline: ToolPipeline,
  handler: ToolHandler,
  execution: ToolExecution,
): Promise<ToolOutcome> {
  const call = () => runGuarded(pipeline, handler, execution);
  const around = pipeline.steps.reduceRight<() => Promise<ToolOutcome>>(
    (next, step) => () => step.around(execution, next),
    call,
  );
  return around();
}

async function runGuarded(
  pipeline: ToolPipeline,
  handler: ToolHandler,
  execution: ToolExecution,
): Promise<ToolOutcome> {
  const args: ToolContextArguments = [execution.args, execution.anotherCall(), execution];
  const host = new ToolHost(args, handler);
  const { observed, context } = execution;
  const trace = observed?.trace ?? context.trace;
  for (const guard of pipeline.guards) {
    const passing = guard.canActivate(host);
    // Most gates decide synchronously.
    if (typeof passing !== 'boolean') await passing;
    trace?.passed(guard.gate);
  }
  const handle = () => handler(args[0] as Record<string, unknown>, args[1]);
  const call = () => defer(async () => (observed ? observed.within(handle) : handle()));
  const around = pipeline.interceptors.reduceRight<() => Observable<unknown>>(
    (next, interceptor) => () => {
      const intercepted = interceptor.intercept(host, { handle: next });
      return intercepted instanceof Promise ? defer(() => intercepted).pipe(mergeAll()) : intercepted;
    },
    call,
  );
  return (await lastValueFrom(around())) as ToolOutcome;
}

/**
 * Steps around every gate and the handler, outermost first: a call's data use is charged, then its outcome is recorded.
 */
export const TOOL_STEPS = [AuditStep, BudgetStep, OutcomeStep] as const satisfies readonly Type<CallStep>[];

/** The gates of every tool call in their order (docs/contributing/life-of-a-call.md). */
export const TOOL_GUARDS = [
  RateLimitGuard,
  AuditGuard,
  ToolGuard,
  EnvironmentGuard,
  BudgetGuard,
  ArgumentsGuard,
  ApprovalGuard,
  BeforeCallGuard,
  CancellationGuard,
  TaskGuard,
] as const satisfies readonly Type<Gate>[];

/** Interceptors around the handler, outermost first. */
const TOOL_INTERCEPTORS = [
  RunningCallsInterceptor,
  AfterCallInterceptor,
  DeadlineInterceptor,
  ResultInterceptor,
] as const;

const pipeline: FactoryProvider<ToolPipeline> = {
  provide: ToolPipeline,
  useFactory: (...made: unknown[]): ToolPipeline => {
    const rest = made.slice(TOOL_STEPS.length);
    return {
      steps: made.slice(0, TOOL_STEPS.length) as CallStep[],
      guards: rest.slice(0, TOOL_GUARDS.length) as Gate[],
      interceptors: rest.slice(TOOL_GUARDS.length) as NestInterceptor[],
    };
  },
  inject: [...TOOL_STEPS, ...TOOL_GUARDS, ...TOOL_INTERCEPTORS],
};

/** Every step, guard and interceptor, and the pipeline that runs them in this order. */
export const PIPELINE_PROVIDERS: readonly Provider[] = [
  ...TOOL_STEPS,
  ...TOOL_GUARDS,
  ...TOOL_INTERCEPTORS,
  pipeline,
];
