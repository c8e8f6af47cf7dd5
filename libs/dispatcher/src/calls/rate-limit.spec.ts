import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, McpRequest, Refused } from '#core';
import { RateLimitGuard } from './guards.js';
import { type CallSources, ParleyToolCall } from './tool-call.js';

describe('a limiter that fails', () => {
  it('refuses as its limit would, and gives the reason to the operator alone', async () => {
    const rateLimiter = {
      rate: { limit: 5, window: 7 },
      check: () => Promise.reject(new Error('redis at 10.0.0.1 is down')),
    };
    const agent = new Agent({ definition: compileAgentDefinition('x', { rateLimiter }), principal: 'p' });
    const sources = {} as CallSources;
    const call = new ParleyToolCall(new McpRequest(agent), { name: 'x', args: {}, sources });
    const refused = await Promise.resolve(new RateLimitGuard().canActivate(call)).catch(
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(Refused);
    const { refusal } = refused as Refused;
    expect(refusal).toMatchObject({
      code: 'rate_limited',
      message: expect.stringMatching(/^Rate limit exceeded \(5 requests per 7s\)\. Retry after [1-5]\.\ds$/),
    });
    expect(refusal.retryAfter).toBeGreaterThanOrEqual(1);
    expect(refusal.retryAfter).toBeLessThanOrEqual(5);
    const { cause, ...sent } = refusal;
    expect(JSON.stringify(sent)).not.toContain('redis');
    expect(cause).toContain('redis');
  });
});
