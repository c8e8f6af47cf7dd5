import { Agent, type AgentOptions, type AgentShape, RateLimiter } from '#agent';

/** A rehearsal spends nothing of anybody's budget. */
class NoLimit extends RateLimiter {
  check(): Promise<null> {
    return Promise.resolve(null);
  }
}

/** An agent of the given shape as a rehearsal runs it; make it once per shape, because decisions are kept per shape. */
export function rehearsingAgent(
  shape: AgentShape,
  as: Pick<AgentOptions, 'identity' | 'tenantId'> = {},
): Agent {
  return new Agent({
    ...as,
    shape: Object.freeze({ ...shape, rateLimiter: new NoLimit(), budget: null }),
    principal: `rehearsal:${shape.name}`,
  });
}
