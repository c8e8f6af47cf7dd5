import type { FactoryProvider, Provider, Type } from '@nestjs/common';
import { AfterCallInterceptor, BeforeCallGuard } from './call-announcements.js';
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
import { DeadlineInterceptor, ResultInterceptor } from './interceptors.js';
import { RunningCallsInterceptor } from './running-calls.js';
import { type Gate, ToolPipeline } from './tool-pipeline.js';

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
