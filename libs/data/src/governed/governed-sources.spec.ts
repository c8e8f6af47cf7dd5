import { describe, expect, it } from 'vitest';
import { Agent, type RequestContext, compileAgentDefinition } from '#core';
import { operationContext } from './governed-sources.js';

const agent = new Agent({ definition: compileAgentDefinition('analyst', {}), principal: 'p' });
const context: RequestContext = { agent, signal: new AbortController().signal, progress: () => undefined };
const telemetry = { traceId: 'a'.repeat(32), tool: () => expect.fail('no tool is called') };
const comment = (more: Partial<RequestContext>) =>
  operationContext({ ...context, ...more }, { tool: 'query_class', timeout: 30 }).comment;

describe('the comment of an operation', () => {
  it('names tool and correlation, and the trace where there is one', () => {
    expect(comment({ correlationId: 's-1' })).toBe('parley:query_class:s-1');
    expect(comment({})).toBe(`parley:query_class:${agent.agentId}`);
    expect(comment({ correlationId: 's-1', telemetry })).toBe(`parley:query_class:s-1:${'a'.repeat(32)}`);
  });

  it('can be taken apart at its colons', () => {
    const parts = comment({ correlationId: 'a.b_c-1', telemetry }).split(':');
    expect(parts).toEqual(['parley', 'query_class', 'a.b_c-1', 'a'.repeat(32)]);
  });

  it('has a colon between its parts alone, for a route of an application too', () => {
    const { comment: of } = operationContext(
      { ...context, correlationId: 's-1' },
      { tool: 'route:Orders.ship', timeout: 30 },
    );
    expect(of).toBe('parley:route.Orders.ship:s-1');
  });
});
