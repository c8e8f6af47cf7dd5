import { Logger } from '@nestjs/common';
import { ToolHost } from './tool-pipeline.js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Agent, compileAgentDefinition, Refused } from '#core';
import { RateLimitGuard } from './guards.js';

describe('a limiter that fails', () => {
  afterEach(() => vi.restoreAllMocks());

  it('says that nothing can be counted, in no words of a limit, and tells the operator alone why', async () => {
    const logged = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const rateLimiter = {
      rate: { limit: 5, window: 7 },
      check: () => Promise.reject(new Error('redis at 10.0.0.1 is down')),
    };
    const agent = new Agent({ shape: compileAgentDefinition('x', { rateLimiter }), principal: 'p' });
    const host = new ToolHost([{}, {}, { context: { agent } }]);
    const error = await new RateLimitGuard().canActivate(host).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Refused);
    const { refusal } = error as Refused;
    expect(refusal).toMatchObject({
      code: 'rate_limited',
      message: expect.stringContaining('cannot be counted at the moment'),
    });
    expect(refusal.message).not.toMatch(/exceeded|5 requests/);
    expect(refusal.retryAfter).toBeGreaterThanOrEqual(1);
    expect(refusal.retryAfter).toBeLessThanOrEqual(5);
    expect(JSON.stringify(refusal)).not.toContain('redis');
    expect(String(logged.mock.calls[0]?.[0])).toContain('redis');
  });
});
