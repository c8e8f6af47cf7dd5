import type { CanActivate, NestInterceptor } from '@nestjs/common';
import fc from 'fast-check';
import { defer, from, mergeMap, tap } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import {
  Agent,
  AGENT_SUSPENDED,
  compileAgentDefinition,
  deriveAgent,
  McpRequest,
  refusals,
  Refused,
} from '#core';
import type { ToolDefinition, ToolHandler, ToolOutcome } from '#tools';
import { compilePolicy, Policies } from '#policy';
import { processState, SuspendedAgents } from '#state';
import { NO_SEARCH, SmallRecords, smallTool } from '../contracts/kernel-under-test.js';
import { CancellationGuard } from './guards.js';
import { DeadlineInterceptor, OutcomeInterceptor, ResultInterceptor } from './interceptors.js';
import { ResultLimit } from './call-limits.js';
import { ToolPipeline } from './tool-pipeline.js';
import { type CallSources, ParleyToolCall } from './tool-call.js';

const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'p' });
const policies = new Policies(compilePolicy({}).policy);
const sources = {
  policies,
  records: new SmallRecords({}),
  search: { for: () => NO_SEARCH },
} as unknown as CallSources;
const DONE: ToolOutcome = { ok: true, data: 1, text: '1', structured: false };

function makeCall(
  handler: ToolHandler,
  context: McpRequest = new McpRequest(agent),
  timeout = 30,
  more: Partial<ToolDefinition> = {},
) {
  const definition = smallTool('query_class', { timeout, ...more });
  return new ParleyToolCall(context, {
    name: 'query_class',
    args: {},
    tool: { definition, handler },
    sources,
  });
}

type Verdict = 'passes' | 'refuses' | 'throws';
interface Step {
  readonly kind: 'guard' | 'interceptor';
  readonly verdict: Verdict;
  readonly later: boolean;
}

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom('guard' as const, 'interceptor' as const),
    verdict: fc.constantFrom<Verdict>('passes', 'passes', 'passes', 'refuses', 'throws'),
    later: fc.boolean(),
  }),
  { maxLength: 8 },
);

const FORBIDDEN = refusals.accessDenied('application', 'Forbidden resource');
const refusal = (at: number) => refusals.cancelled(`step ${at}`);

function makeGuard({ verdict, later }: Step, at: number, seen: string[]): CanActivate {
  const answer = () => {
    seen.push(`guard ${at}`);
    if (verdict === 'throws') throw new Refused(refusal(at));
    return verdict === 'passes';
  };
  return { canActivate: () => (later ? Promise.resolve().then(answer) : answer()) };
}

function makeInterceptor({ later }: Step, at: number, seen: string[]): NestInterceptor {
  return {
    intercept: (_call, next) => {
      seen.push(`enters ${at}`);
      const rest = later
        ? from(Promise.resolve()).pipe(mergeMap(() => next.handle()))
        : defer(() => next.handle());
      return rest.pipe(tap({ next: () => seen.push(`leaves ${at}`), error: () => seen.push(`fails ${at}`) }));
    },
  };
}

/** What happens, said plainly: in order, and back through the interceptors that were entered. */
function expected(list: readonly Step[]): { readonly seen: string[]; readonly ends: unknown } {
  const seen: string[] = [];
  const entered: number[] = [];
  const back = (word: string) => {
    for (const at of entered.toReversed()) seen.push(`${word} ${at}`);
  };
  for (const [at, { kind, verdict }] of list.entries()) {
    if (kind === 'interceptor') {
      seen.push(`enters ${at}`);
      entered.push(at);
      continue;
    }
    seen.push(`guard ${at}`);
    if (verdict === 'passes') continue;
    back('fails');
    return { seen, ends: { ok: false, refusal: verdict === 'throws' ? refusal(at) : FORBIDDEN } };
  }
  seen.push('handler');
  back('leaves');
  return { seen, ends: DONE };
}

describe('the pipeline of a call', () => {
  it('runs its list in order, whichever steps wait: a refusal never reaches what is behind it', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (list) => {
        const seen: string[] = [];
        const made = list.map((step, at) =>
          step.kind === 'guard' ? makeGuard(step, at, seen) : makeInterceptor(step, at, seen),
        );
        const run = makeCall(() => {
          seen.push('handler');
          return DONE;
        });
        const pipeline = new ToolPipeline([new OutcomeInterceptor(), ...made]);
        expect({ ends: await pipeline.run(run), seen }).toEqual(expected(list));
      }),
    );
  });

  it('waits for nothing where no step waits', async () => {
    const quick: Step = { kind: 'guard', verdict: 'passes', later: false };
    const made = [0, 1, 2].map((at) => makeGuard(quick, at, []));
    const handler = vi.fn<ToolHandler>(() => DONE);
    const running = new ToolPipeline([new OutcomeInterceptor(), ...made]).run(makeCall(handler));
    expect(handler).toHaveBeenCalledOnce();
    expect(await running).toBe(DONE);
  });

  it('makes no signal for what a guard refuses', async () => {
    const run = makeCall(() => DONE);
    const made = vi.spyOn(globalThis, 'AbortController');
    const guard = makeGuard({ kind: 'guard', verdict: 'refuses', later: false }, 0, []);
    expect(await new ToolPipeline([new OutcomeInterceptor(), guard]).run(run)).toMatchObject({ ok: false });
    expect(made).not.toHaveBeenCalled();
    made.mockRestore();
  });

  it('waits for a promise of another library', async () => {
    const events = { emit: () => true } as never;
    const pipeline = new ToolPipeline([new ResultInterceptor(events, new ResultLimit(4_194_304))]);
    // oxlint-disable-next-line unicorn/no-thenable
    const thenable = { then: (resolve: (value: unknown) => void) => resolve({ held: 1 }) };
    expect(await pipeline.run(makeCall(() => thenable))).toMatchObject({ ok: true, data: { held: 1 } });
  });
});

/** Calls a tool within a call, as an agent of it. */
const callWriter = (call: ParleyToolCall, permission: ToolDefinition['permission'] = 'write') =>
  new ToolPipeline([new OutcomeInterceptor(), new CancellationGuard()]).run(
    makeCall(() => DONE, call.with({ agent: deriveAgent(call.agent) }), 30, { permission }),
  );

describe('a result that is too long', () => {
  const pipeline = new ToolPipeline([
    new ResultInterceptor({ emit: () => true } as never, new ResultLimit(100)),
  ]);
  const refuse = async (more: Partial<ToolDefinition>) => {
    const outcome = await pipeline.run(makeCall(() => 'x'.repeat(200), undefined, 30, more));
    return outcome.ok ? '' : outcome.refusal.message;
  };

  it.each<Partial<ToolDefinition>>([
    { permission: 'write' },
    { permission: 'admin' },
    { permission: 'readonly', needs: ['methods'] },
  ])('says of a call that may have written that it has run: %j', async (more) => {
    expect(await refuse(more)).toMatch(
      /^Tool result exceeded 100 bytes.* has run, .*look before you repeat it$/,
    );
  });

  it('says it of a call that only reads, and called a tool that may have written', async () => {
    const run = makeCall(async (_args, call) => {
      await callWriter(call as ParleyToolCall);
      return 'x'.repeat(200);
    });
    expect(await pipeline.run(run)).toMatchObject({
      refusal: { message: expect.stringContaining('has run') as string },
    });
  });

  it('says nothing of the kind where nothing was written', async () => {
    expect(await refuse({ permission: 'readonly' })).not.toContain('has run');
    const run = makeCall(async (_args, call) => {
      await callWriter(call as ParleyToolCall, 'readonly');
      return 'x'.repeat(200);
    });
    const outcome = await pipeline.run(run);
    expect(outcome.ok ? '' : outcome.refusal.message).toMatch(/^(?!.*has run).+$/);
  });
});

describe('the deadline of a run', () => {
  const suspended = new SuspendedAgents(processState());
  const pipeline = new ToolPipeline([new OutcomeInterceptor(), new DeadlineInterceptor(suspended)]);

  it('ends the run at its time-out, and aborts what it started', async () => {
    let signal: AbortSignal | undefined;
    const run = makeCall(
      (_args, call) => {
        signal = call.signal;
        return new Promise(() => undefined);
      },
      undefined,
      0.01,
    );
    expect(await pipeline.run(run)).toMatchObject({ ok: false, refusal: { code: 'timeout' } });
    expect(signal).toMatchObject({ aborted: true, reason: 'timeout' });
  });

  it.each<[string, Partial<ToolDefinition>, (call: ParleyToolCall) => unknown, boolean]>([
    ['only reads', {}, () => undefined, false],
    ['only reads, and called a tool that only reads', {}, (call) => callWriter(call, 'readonly'), false],
    ['only reads, and called one that may have written', {}, callWriter, true],
    [
      'only reads, and called one that called one that may have written',
      {},
      (call) =>
        new ToolPipeline([new OutcomeInterceptor()]).run(
          makeCall((_args, inner) => callWriter(inner as ParleyToolCall), call),
        ),
      true,
    ],
    ['writes', { needs: ['rows'] }, () => undefined, true],
    ['may write by means of its own', { permission: 'write' }, () => undefined, true],
  ])('says whether data may have changed, of a tool that %s', async (_, more, work, changed) => {
    const run = makeCall(
      async (_args, call) => {
        await work(call as ParleyToolCall);
        return new Promise(() => undefined);
      },
      undefined,
      0.03,
      more,
    );
    const outcome = await pipeline.run(run);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'timeout' } });
    expect(outcome.ok ? undefined : outcome.refusal.details?.outcome).toBe(changed ? 'unknown' : undefined);
  });

  it('ends the run with its request, before or while its handler runs', async () => {
    const ends = new AbortController();
    const context = new McpRequest(agent, { signal: ends.signal });
    const running = pipeline.run(makeCall(() => new Promise(() => undefined), context));
    ends.abort('client_disconnect');
    const cancelled = { ok: false, refusal: { code: 'cancelled' } };
    expect(await running).toMatchObject(cancelled);
    const handler = vi.fn<ToolHandler>();
    expect(await pipeline.run(makeCall(handler, context))).toMatchObject(cancelled);
    expect(handler).not.toHaveBeenCalled();
  });

  it.each([
    ['its agent', agent],
    ['the agent that made its agent', deriveAgent(agent)],
  ])('ends the run when %s is suspended, before or while its handler runs', async (_, caller) => {
    const context = new McpRequest(caller);
    let signal: AbortSignal | undefined;
    const endless: ToolHandler = (_args, call) => {
      ({ signal } = call);
      return new Promise(() => undefined);
    };
    const running = pipeline.run(makeCall(endless, context));
    await suspended.suspend({ agent: 'b', by: 'key:chief', reason: 'gone wild' });
    expect(signal).toMatchObject({ aborted: false });
    await suspended.suspend({ agent: 'a', by: 'key:chief', reason: 'gone wild' });
    const ended = { ok: false, refusal: refusals.cancelled(AGENT_SUSPENDED) };
    expect(await running).toMatchObject(ended);
    expect(signal).toMatchObject({ aborted: true });
    const handler = vi.fn<ToolHandler>();
    expect(await pipeline.run(makeCall(handler, context))).toMatchObject(ended);
    expect(handler).not.toHaveBeenCalled();
    await suspended.resume('a');
    expect(await pipeline.run(makeCall(() => DONE, context))).toBe(DONE);
  });

  it('lets the run pass that was in time, and leaves no listener behind', async () => {
    const listeners = new Set<() => void>();
    const context = new McpRequest(agent, {
      signal: new AbortController().signal,
      aborted: false,
      onAbort: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    });
    const run = makeCall(async () => {
      await Promise.resolve();
      expect(listeners.size).toBe(1);
      return DONE;
    }, context);
    expect(await pipeline.run(run)).toBe(DONE);
    expect(listeners.size).toBe(0);
  });
});
