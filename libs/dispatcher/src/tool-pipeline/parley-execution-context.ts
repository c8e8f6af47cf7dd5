import type { ExecutionContext } from '@nestjs/common';
import type { Agent } from '#agent';
import type { ToolCall, ToolDefinition } from '#tools';
import { TOOL_CONTEXT_TYPE } from './tool-execution.js';

/** What a guard, an interceptor, a filter or a decorator of a tool may ask of the call that it stands in. */
export class ParleyExecutionContext {
  private constructor(private readonly host: ExecutionContext) {}

  /** The call behind what a guard, interceptor or filter of a tool was given. @throws TypeError in a context that is not of a tool: ask `isTool` first where both pass */
  static create(context: ExecutionContext): ParleyExecutionContext {
    if (!ParleyExecutionContext.isTool(context))
      throw new TypeError(`the context is of type '${context.getType()}', not of a tool`);
    return new ParleyExecutionContext(context);
  }

  /** Whether a context is one of a tool. */
  static isTool(context: ExecutionContext): boolean {
    return context.getType<string>() === TOOL_CONTEXT_TYPE;
  }

  /** As the tool's schema read them. */
  getArguments<T = Readonly<Record<string, unknown>>>(): T {
    return this.host.getArgByIndex<T>(0);
  }

  /** The call, with its governed doors. */
  getCall(): ToolCall {
    return this.host.getArgByIndex<ToolCall>(1);
  }

  /** Who is calling. */
  getAgent(): Agent {
    return this.getCall().agent;
  }

  /** What is called. */
  getTool(): ToolDefinition {
    return this.getCall().tool;
  }
}
