import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, McpRequest, type RequestTransport } from '#core';
import { CallOperation } from './governed-sources.js';

const agent = new Agent({ definition: compileAgentDefinition('analyst', {}), principal: 'p' });
const telemetry = { traceId: 'a'.repeat(32), tool: () => expect.fail('no tool is called') };
const comment = (more: Partial<RequestTransport>, tool = 'query_class') =>
  new CallOperation(new McpRequest(agent, { signal: new AbortController().signal, ...more }), {
    tool,
    timeout: 30,
  }).comment;

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
    expect(comment({ correlationId: 's-1' }, 'route:Orders.ship')).toBe('parley:route.Orders.ship:s-1');
  });
});
