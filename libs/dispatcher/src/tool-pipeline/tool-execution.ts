import type { ExecutionContext } from '@nestjs/common';
import type { CallContext, ToolTelemetry } from '#agent';
import type { ToolCall, ToolDefinition } from '#tools';
import type { BudgetedCall } from './budgeted-call.js';
import type { RunClock } from './run-clock.js';

/** One run on its way through the pipeline: what guards and interceptors decide on. */
export interface ToolExecution {
  readonly name: string;
  /** Undefined when no tool has that name; the tool gate refuses before anything else asks. */
  readonly definition: ToolDefinition | undefined;
  readonly args: unknown;
  readonly context: CallContext;
  /** Who pays for the data that the call uses; null where nothing limits it. */
  readonly budgeted: BudgetedCall | null;
  /** Of the handler: gates may wait longer. */
  readonly clock: RunClock;
  /** Absent where nothing is measured. */
  readonly observed?: ToolTelemetry | undefined;
  /** The call with doors of its own, for a preview: what is decided later asks about rights anew. */
  anotherCall(): ToolCall;
  /** Ends the run's own signal: its time is up. */
  abort(reason: unknown): void;
  /** Notes that every gate let it pass: from here on it is a run. */
  begin(): void;
  /** Notes for the audit record who decided upon it. */
  approved(approver: string): void;
  /** Notes for the audit record that the result holds one of the operator's canaries. */
  flag(phrase: string): void;
}

/** Seconds that a run may take: a task has more of them. */
export function secondsFor(
  definition: ToolDefinition | undefined,
  { background }: Pick<CallContext, 'background'>,
): number {
  return background === 'running' ? (definition?.taskTimeout ?? 600) : (definition?.timeout ?? 30);
}

/** Positions of the arguments of an execution context of type `mcp`: a handler's own two come first. */
export type ToolContextArguments = readonly [args: unknown, call: ToolCall, execution: ToolExecution];

export const TOOL_CONTEXT_TYPE = 'mcp';

export function toolExecutionOf(context: ExecutionContext): ToolExecution {
  return context.getArgByIndex<ToolExecution>(2);
}
