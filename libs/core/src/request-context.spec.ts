import { describe, expect, it } from 'vitest';
import { Agent } from './agent.js';
import { compileAgentDefinition } from './agent-definition.js';
import { derivedRequest, InternalRequest, isAborted, type RequestContext } from './request-context.js';

const agent = new Agent({ definition: compileAgentDefinition('a', {}), principal: 'p' });

describe('a derived request', () => {
  it('has the members of its request, and its own', () => {
    const request: RequestContext = {
      agent,
      signal: new AbortController().signal,
      correlationId: 'c',
      version: '2025-11-25',
      requestId: 7,
      progress: () => undefined,
    };
    expect(derivedRequest(request, { background: 'offered' })).toMatchObject({
      agent,
      correlationId: 'c',
      version: '2025-11-25',
      requestId: 7,
      background: 'offered',
    });
  });

  it('ends with its request, and reports through it', () => {
    const ends = new AbortController();
    const reports: unknown[] = [];
    const request: RequestContext = {
      agent,
      signal: ends.signal,
      progress: (update) => reports.push(update),
      log: (entry) => reports.push(entry),
    };
    const { progress, log } = derivedRequest(request, {});
    progress({ progress: 1 });
    log?.({ level: 'info', data: 'text' });
    expect(reports).toEqual([{ progress: 1 }, { level: 'info', data: 'text' }]);
    const derived = derivedRequest(request, {});
    expect(isAborted(derived)).toBe(false);
    ends.abort('gone');
    expect(isAborted(derived)).toBe(true);
    expect(derived.signal.reason).toBe('gone');
  });

  it('reads no signal to say whether its request has ended', () => {
    const request: RequestContext = {
      agent,
      aborted: true,
      get signal(): AbortSignal {
        throw new Error('the signal was read');
      },
      progress: () => undefined,
    };
    expect(isAborted(derivedRequest(request, {}))).toBe(true);
    expect(isAborted(new InternalRequest(agent))).toBe(false);
  });
});
