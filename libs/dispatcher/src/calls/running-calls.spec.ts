import { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, McpRequest, Refused, type RequestOptions } from '#core';
import type { ToolOutcome } from '#tools';
import { RunningCalls, RunningCallsInterceptor } from './interceptors.js';
import type { ParleyToolCall } from './tool-call.js';

const definition = compileAgentDefinition('reader');
const contextOf = (
  principal: string,
  options: RequestOptions & { readonly agent?: Agent; readonly signal?: AbortSignal } = {},
) => {
  const { agent = new Agent({ definition, principal }), signal = new AbortController().signal } = options;
  return new McpRequest(agent, { signal }, options);
};
const toRefusal = (work: unknown) =>
  Promise.resolve(work).then(
    () => null,
    (error: unknown) => (error instanceof Refused ? error.refusal : error),
  );

describe('the calls that a principal runs at once', () => {
  it('are bounded for each principal, on whichever transport they came', async () => {
    const running = new RunningCalls({ perPrincipal: 2, timeout: 5 });
    const ends = [await running.begin(contextOf('a')), await running.begin(contextOf('a'))];
    const refusal = await toRefusal(running.begin(contextOf('a')));
    expect(refusal).toMatchObject({ code: 'rate_limited', gate: 'running_calls' });
    expect((refusal as { retryAfter: number }).retryAfter).toBeGreaterThanOrEqual(1);
    expect(await toRefusal(running.begin(contextOf('b')))).toBeNull();
    ends[0]?.();
    expect(await toRefusal(running.begin(contextOf('a')))).toBeNull();
  });

  it('wait for an earlier one to end, two for each that may run', async () => {
    const running = new RunningCalls({ perPrincipal: 1, timeout: 60_000 });
    const end = await running.begin(contextOf('a'));
    const waiting = Array.from({ length: 2 }, () => running.begin(contextOf('a')));
    expect(await toRefusal(running.begin(contextOf('a')))).toMatchObject({ code: 'rate_limited' });
    end();
    for (const turn of waiting) (await turn)();
  });

  it('do not count the run of a task, and one that is cancelled while it waits is', async () => {
    const running = new RunningCalls({ perPrincipal: 1, timeout: 60_000 });
    await running.begin(contextOf('a'));
    expect(await toRefusal(running.begin(contextOf('a', { background: 'running' })))).toBeNull();
    const gone = new AbortController();
    const waiting = running.begin(contextOf('a', { signal: gone.signal }));
    gone.abort('client_disconnected');
    expect(await toRefusal(waiting)).toMatchObject({ code: 'cancelled' });
  });

  it('keep no slot for one that an interceptor further out ends while it waits', async () => {
    const running = new RunningCalls({ perPrincipal: 1, timeout: 60_000 });
    const end = await running.begin(contextOf('a'));
    let handled = 0;
    const next = { handle: () => new Observable<ToolOutcome>(() => void (handled += 1)) };
    const call = { request: contextOf('a') } as ParleyToolCall;
    new RunningCallsInterceptor(running).intercept(call, next).subscribe().unsubscribe();
    end();
    (await running.begin(contextOf('a')))();
    expect(handled).toBe(0);
  });

  it('are unbounded where the operator says so', async () => {
    const running = new RunningCalls({ perPrincipal: null });
    for (let at = 0; at < 200; at += 1) expect(await toRefusal(running.begin(contextOf('a')))).toBeNull();
  });
});
