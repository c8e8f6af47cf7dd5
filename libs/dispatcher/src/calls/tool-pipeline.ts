import type {
  CanActivate,
  ExecutionContext,
  FactoryProvider,
  NestInterceptor,
  Provider,
  Type,
} from '@nestjs/common';
import { defer, lastValueFrom, mergeAll, type Observable } from 'rxjs';
import type { ToolHandler, ToolOutcome } from '#tools';
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
import { TOOL_CONTEXT_TYPE, type ToolContextArguments } from './tool-execution.js';

/** A guard of every call, by the name that traces know it by. */
export interface Gate extends CanActivate {
  readonly gate: string;
}

/**
 * The order of every tool call (docs/life-of-a-call.md). This list is what runs: guards first to last, then the
 * interceptors around the handler, outermost first. Enhancers that a tool declares run inside the handler.
 */
export abstract class ToolPipeline {
  abstract readonly guards: readonly Gate[];
  abstract readonly interceptors: readonly NestInterceptor[];
}

/** What guards and interceptors of every call receive: of type `mcp`, without HTTP, RPC or WebSockets. */
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

  /** Guards of every call stand before the class of a tool is known. */
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

/** @throws Refused by a guard, an interceptor or the handler; anything else is a fault */
export async function runThrough(
  pipeline: ToolPipeline,
  handler: ToolHandler,
  args: ToolContextArguments,
): Promise<ToolOutcome> {
  const host = new ToolHost(args, handler);
  const { observed, context } = args[2];
  const trace = observed?.trace ?? context.trace;
  for (const guard of pipeline.guards) {
    const passing = guard.canActivate(host);
    // Most gates decide at once.
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

/** The gates of every tool call in their order (docs/life-of-a-call.md). */
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

/** Around the handler, outermost first. */
export const TOOL_INTERCEPTORS = [
  RunningCallsInterceptor,
  AfterCallInterceptor,
  DeadlineInterceptor,
  ResultInterceptor,
] as const;

const pipeline: FactoryProvider<ToolPipeline> = {
  provide: ToolPipeline,
  useFactory: (...enhancers: unknown[]) => ({
    guards: enhancers.slice(0, TOOL_GUARDS.length) as Gate[],
    interceptors: enhancers.slice(TOOL_GUARDS.length) as ToolPipeline['interceptors'],
  }),
  inject: [...TOOL_GUARDS, ...TOOL_INTERCEPTORS],
};

/** Every guard and interceptor, and the pipeline that runs them in this order. */
export const PIPELINE_PROVIDERS: readonly Provider[] = [...TOOL_GUARDS, ...TOOL_INTERCEPTORS, pipeline];
