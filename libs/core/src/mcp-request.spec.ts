import { describe, expect, it } from 'vitest';
import { type Abortable, isAborted, LazyAbort, whenAborted } from './abortable.js';
import { Agent } from './agent.js';
import { compileAgentDefinition } from './agent-definition.js';
import { McpRequest } from './mcp-request.js';

const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'p' });

describe('a request with other options', () => {
  it('has those, and otherwise the members of the first', () => {
    const transport = { signal: new AbortController().signal, correlationId: 'c', requestId: 7 };
    const request = new McpRequest(agent, transport, { approval: { by: 'ada' } });
    expect(request.with({ background: 'offered' })).toMatchObject({
      agent,
      transport,
      correlationId: 'c',
      approval: { by: 'ada' },
      background: 'offered',
    });
  });

  it('ends with the first, and reports through it', () => {
    const ends = new AbortController();
    const reports: unknown[] = [];
    const request = new McpRequest(agent, {
      signal: ends.signal,
      progress: (update) => reports.push(update),
      log: (entry) => reports.push(entry),
    });
    const derived = request.with({});
    const { progress, log } = derived;
    progress({ progress: 1 });
    log?.({ level: 'info', data: 'text' });
    expect(reports).toEqual([{ progress: 1 }, { level: 'info', data: 'text' }]);
    expect(derived.aborted).toBe(false);
    ends.abort('gone');
    expect(derived.aborted).toBe(true);
    expect(derived.signal.reason).toBe('gone');
  });

  it('reads no signal to say whether it has ended', () => {
    const transport = {
      aborted: true,
      get signal(): AbortSignal {
        throw new Error('the signal was read');
      },
    };
    expect(new McpRequest(agent, transport).with({}).aborted).toBe(true);
    expect(new McpRequest(agent).aborted).toBe(false);
  });
});

it('a request reports progress that is finite, and anything else is an error of the one who reports it', () => {
  const reports: unknown[] = [];
  const signal = new AbortController().signal;
  const { progress } = new McpRequest(agent, { signal, progress: (update) => reports.push(update) });
  for (const update of [{ progress: Number.NaN }, { progress: '1' }, 1, 'half', undefined, null])
    expect(() => progress(update as never)).toThrow(TypeError);
  progress({ progress: 1, total: null } as never);
  expect(reports).toEqual([{ progress: 1 }]);
});

class Signalling implements Abortable {
  private readonly controller = new AbortController();
  readonly signal = this.controller.signal;

  abort(reason: string): void {
    this.controller.abort(reason);
  }
}

describe.each([
  ['with a signal of its own', () => new Signalling()],
  ['that makes its signal when it is read', () => new LazyAbort<string>()],
])('work %s', (_name, made) => {
  it('tells its listeners once that it has to end', () => {
    const work = made();
    let told = 0;
    whenAborted(work, () => (told += 1));
    whenAborted(work, () => (told += 1));
    expect(isAborted(work)).toBe(false);
    work.abort('gone');
    work.abort('again');
    expect(isAborted(work)).toBe(true);
    expect(told).toBe(2);
  });

  it('does not tell a listener that was removed, or that came too late', () => {
    const work = made();
    let told = 0;
    const remove = whenAborted(work, () => (told += 1));
    remove();
    remove();
    work.abort('gone');
    whenAborted(work, () => (told += 1));
    expect(told).toBe(0);
  });

  it('gives the first reason, whenever its signal is read', () => {
    const [before, after] = [made(), made()];
    const { signal } = before;
    before.abort('first');
    before.abort('second');
    after.abort('first');
    expect([signal.reason, after.signal.reason]).toEqual(['first', 'first']);
    expect(after.signal.aborted).toBe(true);
  });

  it('tells listeners that remove others while they are told', () => {
    const work = made();
    const told: string[] = [];
    const removers: (() => void)[] = [];
    for (const name of ['one', 'two', 'three'])
      removers.push(
        whenAborted(work, () => {
          told.push(name);
          removers[0]?.();
        }),
      );
    work.abort('gone');
    expect(told).toEqual(['one', 'two', 'three']);
  });
});

it('a signal that was read before the end is the one that is read after it', () => {
  const work = new LazyAbort();
  const { signal } = work;
  work.abort(undefined);
  expect(work.signal).toBe(signal);
  expect([signal.aborted, work.aborted]).toEqual([true, true]);
});
