import type { CanActivate, NestInterceptor } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defer, from, lastValueFrom, mergeAll, type Observable } from 'rxjs';
import type { ToolHandler, ToolOutcome } from '#tools';
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

/** @throws Refused by a guard, an interceptor or the handler; anything else is a fault */
export async function runThrough(
  pipeline: ToolPipeline,
  handler: ToolHandler,
  args: ToolContextArguments,
): Promise<ToolOutcome> {
  const host = new ExecutionContextHost([...args], null, handler);
  host.setType(TOOL_CONTEXT_TYPE);
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
      return intercepted instanceof Promise ? from(intercepted).pipe(mergeAll()) : intercepted;
    },
    call,
  );
  return (await lastValueFrom(around())) as ToolOutcome;
}
