import type { EventEmitter2 } from '@nestjs/event-emitter';
import type { AuditSink } from '#audit';
import type { EnvironmentGates, Policies } from '#policy';
import type { CallableMethods, ToolRegistry } from '#tools';
import type { Approver } from './approver.js';
import type { DataBudgets } from './data-budgets.js';
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
import { type RunningCalls, RunningCallsInterceptor } from './running-calls.js';
import type { ToolCallbacks } from './tool-callbacks.js';
import { toolExecutionOf } from './tool-execution.js';
import type { ToolPipeline } from './tool-pipeline.js';

export interface PipelineParts {
  readonly registry: ToolRegistry;
  readonly policies: Policies;
  readonly gates: EnvironmentGates;
  /** Asked whether a call can be recorded. */
  readonly audit: Pick<AuditSink, 'admit'>;
  readonly approver: Approver;
  readonly methods: CallableMethods;
  readonly events: EventEmitter2;
  readonly callbacks: ToolCallbacks;
  readonly budgets: DataBudgets;
  readonly running: RunningCalls;
}

/** The gates of every tool call in their order (docs/life-of-a-call.md). */
export function createPipeline({
  registry,
  audit,
  policies,
  gates,
  approver,
  methods,
  events,
  callbacks,
  budgets,
  running,
}: PipelineParts): ToolPipeline {
  return {
    guards: [
      new RateLimitGuard(),
      new AuditGuard(audit),
      new ToolGuard(registry, gates),
      new EnvironmentGuard(gates),
      new BudgetGuard(budgets),
      new ArgumentsGuard(registry, policies),
      new ApprovalGuard(policies, approver, methods, gates),
      new BeforeCallGuard(callbacks),
      new CancellationGuard(),
      new TaskGuard(),
    ],
    interceptors: [
      new RunningCallsInterceptor(running),
      new AfterCallInterceptor(callbacks),
      new DeadlineInterceptor(),
      new ResultInterceptor(policies, (phrase, host) => {
        const execution = toolExecutionOf(host);
        const { name: tool, context, args } = execution;
        execution.flag(phrase);
        const className = (args as { class_name?: unknown } | null)?.class_name;
        events.emit('parse.agent.prompt_injection_detected', {
          tool,
          phrase,
          agent_id: context.agent.agentId,
          ...(typeof className === 'string' && { class_name: className }),
        });
      }),
    ],
  };
}
