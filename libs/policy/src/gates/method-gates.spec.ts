import { describe, expect, it } from 'vitest';
import { Agent, type AgentShapeOptions, compileAgentShape } from '#agent';
import { methodGate } from './method-gates.js';
import { readEnvironmentGates } from './tool-gates.js';

const OPEN = readEnvironmentGates({
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
});
const SHUT = readEnvironmentGates({
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
});
const gate = (
  options: AgentShapeOptions,
  permission: 'readonly' | 'write' | 'admin',
  gates = OPEN,
  className = 'Post',
) =>
  methodGate(
    new Agent({ shape: compileAgentShape('x', options), principal: 'p' }),
    { className, name: 'archive', permission },
    gates,
  );

describe('the method gate', () => {
  it('passes a method of the tier in an open environment', () => {
    expect(gate({ permissions: 'write' }, 'write')).toBeNull();
    expect(gate({}, 'readonly', SHUT)).toBeNull();
  });

  it('names the tier first, then the filter, then the environment', () => {
    const methods = { except: ['archive'] };
    expect(gate({ methods }, 'write', SHUT)?.code).toBe('permission_denied');
    expect(gate({ permissions: 'admin', methods }, 'write', SHUT)?.code).toBe('tool_filtered');
    expect(gate({ permissions: 'admin' }, 'write', SHUT)?.message).toContain(
      'PARSE_AGENT_ALLOW_WRITE_TOOLS=true',
    );
    expect(gate({ permissions: 'admin' }, 'admin', SHUT)?.message).toContain(
      'PARSE_AGENT_ALLOW_SCHEMA_OPS=true',
    );
  });

  it.each([
    ['archive', 'Post', true],
    ['Post.archive', 'Post', true],
    ['Post.publish', 'Post', false],
    ['Author.archive', 'Post', false],
    ['User.archive', '_User', true],
    ['_User.archive', '_User', true],
  ])('lets the entry %s match the method on %s: %s', (entry, className, matches) => {
    const only = gate({ methods: { only: [entry] } }, 'readonly', OPEN, className);
    const except = gate({ methods: { except: [entry] } }, 'readonly', OPEN, className);
    expect(only === null).toBe(matches);
    expect(except === null).toBe(!matches);
  });

  it('permits nothing through an empty list', () => {
    expect(gate({ methods: [] }, 'readonly')?.code).toBe('tool_filtered');
  });
});
