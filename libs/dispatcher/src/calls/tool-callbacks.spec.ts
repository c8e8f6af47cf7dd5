import { Logger } from '@nestjs/common';
import { lastValueFrom, of, throwError } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Agent, compileAgentDefinition, refusals, Refused, McpRequest } from '#core';
import type { ToolOutcome } from '#tools';
import { AfterCallInterceptor, BeforeCallInterceptor, ToolCallbacks } from './call-journal.js';
import { type CallSources, ParleyToolCall } from './tool-call.js';

const agent = new Agent({ definition: compileAgentDefinition('x'), principal: 'p' });
const call = { tool: 'query_class', args: { limit: 1 }, agent };
const ok: ToolOutcome = { ok: true, data: 1, text: '1', structured: false };
const settled = () => new Promise((resolve) => setImmediate(resolve));

const context = new McpRequest(agent);
const running = new ParleyToolCall(context, {
  name: 'query_class',
  args: call.args,
  sources: {} as CallSources,
});

describe('tool callbacks', () => {
  const logged: string[] = [];
  beforeEach(() => {
    logged.length = 0;
    vi.spyOn(Logger.prototype, 'error').mockImplementation((message: unknown) => {
      logged.push(String(message));
    });
  });
  afterEach(() => vi.restoreAllMocks());

  it('are called in the order they were added, any number of each', () => {
    const received: string[] = [];
    new ToolCallbacks()
      .beforeToolCall(({ tool }) => received.push(`1 ${tool}`))
      .beforeToolCall(({ tool }) => received.push(`2 ${tool}`))
      .announceBefore(running);
    expect(received).toEqual(['1 query_class', '2 query_class']);
  });

  it('are logged and ignored when they throw or reject, and the next still hears', async () => {
    const heard: unknown[] = [];
    const callbacks = new ToolCallbacks()
      .afterToolCall(() => {
        throw new Error('thrown');
      })
      .afterToolCall(() => Promise.reject(new Error('rejected')))
      .afterToolCall((_, outcome) => heard.push(outcome));
    callbacks.announceAfter(running, ok);
    await settled();
    expect(heard).toEqual([ok]);
    expect(logged).toEqual([expect.stringContaining('thrown'), expect.stringContaining('rejected')]);
  });

  it('cannot change what runs: they receive a copy', () => {
    const callbacks = new ToolCallbacks().beforeToolCall((announced) => {
      (announced.args as { limit: number }).limit = 1000;
    });
    new BeforeCallInterceptor(callbacks).intercept(running, { handle: () => of(ok) });
    expect(running.args).toEqual({ limit: 1 });
  });

  it('hear afterwards of results and of a cancellation, not of other refusals', async () => {
    const heard: ToolOutcome[] = [];
    const around = new AfterCallInterceptor(
      new ToolCallbacks().afterToolCall((_, outcome) => heard.push(outcome)),
    );
    await lastValueFrom(around.intercept(running, { handle: () => of(ok) }));
    for (const refusal of [refusals.cancelled('gone'), refusals.toolTimedOut('x', 1, 'other')]) {
      const failing = around.intercept(running, { handle: () => throwError(() => new Refused(refusal)) });
      await expect(lastValueFrom(failing)).rejects.toBeInstanceOf(Refused);
    }
    await settled();
    expect(heard).toEqual([ok, { ok: false, refusal: refusals.cancelled('gone') }]);
  });
});
