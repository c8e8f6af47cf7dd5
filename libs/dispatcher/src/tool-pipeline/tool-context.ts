import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { ExternalContextCreator } from '@nestjs/core';
import type { ToolCall, ToolHandler } from '#tools';
import { resultOf } from './observed-result.js';
import { TOOL_CONTEXT_TYPE } from './tool-execution.js';

const ARGUMENTS = 'parley:tool-arguments';
/** Nest's own number for a request body: pipes meet the arguments as one, so that a ValidationPipe reads them. */
const BODY = 3;

type Method = (this: unknown, args: unknown, call: ToolCall) => unknown;

/**
 * The Nest context of a tool: `@UseGuards`, `@UseInterceptors`, `@UsePipes` and `@UseFilters` of its method and class, and the
 * application's global ones that meet every context, of type `mcp`. Parley's gates are not among them: they ran before, and
 * arguments that do not fit the schema never come this far. Pipes are given the arguments alone, never the call.
 */
@Injectable()
export class ToolContext {
  private readonly calls = new AsyncLocalStorage<ToolCall>();

  constructor(private readonly contexts: ExternalContextCreator) {}

  handlerOf(instance: object, methodName: string): ToolHandler {
    const method = Reflect.get(instance, methodName) as Method;
    Reflect.defineMetadata(
      ARGUMENTS,
      { [`${BODY}:0`]: { index: 0, data: undefined, pipes: [] } },
      instance.constructor,
      methodName,
    );
    const inContext = this.contexts.create(
      instance,
      this.entryOf(method) as (...args: unknown[]) => unknown,
      methodName,
      ARGUMENTS,
      { exchangeKeyForValue: (_type: number, _data: unknown, [args]: unknown[]) => args },
      undefined,
      undefined,
      { guards: true, interceptors: true, filters: true },
      TOOL_CONTEXT_TYPE,
    ) as ToolHandler;
    return (args, call) => this.calls.run(call, () => inContext(args, call));
  }

  /** Stands for the method where Nest looks for its metadata; Nest hands it the arguments, the call comes from around it. */
  private entryOf(method: Method): Method {
    const { calls } = this;
    const entry: Method = function (this: unknown, args) {
      const call = calls.getStore();
      // Nest runs it within the call, or not at all.
      if (!call) throw new Error('a tool ran outside of a call');
      return resultOf(method.call(this, args, call), call);
    };
    for (const key of Reflect.getMetadataKeys(method) as unknown[])
      Reflect.defineMetadata(key, Reflect.getMetadata(key, method), entry);
    Object.defineProperty(entry, 'name', { value: method.name });
    return entry;
  }
}
