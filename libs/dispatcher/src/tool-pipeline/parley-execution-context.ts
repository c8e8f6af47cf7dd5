import type { ExecutionContext } from '@nestjs/common';
import type { Agent } from '#agent';
import type { ToolCall, ToolDefinition } from '#tools';
import { TOOL_CONTEXT_TYPE } from './tool-execution.js';

/** What a guard, an interceptor, a filter or a decorator of a tool may ask of the call that it stands in. */
export class ParleyExecutionContext {
  private constructor(private readonly host: ExecutionContext) {}

  /** @throws TypeError in a context that is not of a tool: ask `isTool` first where both pass */
  static create(context: ExecutionContext): ParleyExecutionContext {
    if (!ParleyExecutionContext.isTool(context))
      throw new TypeError(`the context is of type '${context.getType()}', not of a tool`);
    return new ParleyExecutionContext(context);
  }

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

  getAgent(): Agent {
    return this.getCall().agent;
  }

  getTool(): ToolDefinition {
    return this.getCall().tool;
  }
}
