import { describe, expect, it } from 'vitest';
import { Agent, type AgentDefinitionOptions, compileAgentDefinition } from '#core';
import { envGate, type GatedTool, methodGate, readEnvironmentGates, toolGate } from './tool-gates.js';

const agent = (options: AgentDefinitionOptions) =>
  new Agent({ definition: compileAgentDefinition('x', options), principal: 'p' });
const tool = (
  name: string,
  permission: GatedTool['permission'] = 'readonly',
  clientSafe = false,
): GatedTool => ({
  name,
  permission,
  clientSafe,
});

const CASES: readonly [
  rule: string,
  options: AgentDefinitionOptions,
  tool: GatedTool | undefined,
  name: string,
  code: string | null,
  text: string[],
][] = [
  ['permits a tool of the tier', {}, tool('query_class'), 'query_class', null, []],
  [
    'names the tools filter when the tier would permit',
    { tools: { except: ['aggregate'] } },
    tool('aggregate'),
    'aggregate',
    'tool_filtered',
    ["Tool 'aggregate' is not enabled for this agent instance", 'tools: filter'],
  ],
  [
    'names the tier when the filter excludes it too',
    { tools: ['list_tools'] },
    tool('delete_object', 'admin'),
    'delete_object',
    'permission_denied',
    ["Permission denied: 'delete_object' requires admin permissions", 'Current level: readonly'],
  ],
  [
    'calls the tier of an unknown tool unknown',
    {},
    undefined,
    'nope',
    'permission_denied',
    ['requires unknown permissions'],
  ],
  [
    'lets the mutation gate win over the tier in client mode',
    { clientMode: true },
    tool('create_object', 'write', true),
    'create_object',
    'access_denied',
    [
      "Raw mutation tool 'create_object'",
      'client-mode agent',
      'allow_mutations: true',
      'PARSE_AGENT_ALLOW_RAW_CRUD',
    ],
  ],
  [
    'holds a client-mode agent below its ceiling',
    { clientMode: true },
    tool('aggregate'),
    'aggregate',
    'access_denied',
    ["Tool 'aggregate' is not available to client-mode agents", 'query_class', 'client_safe: true'],
  ],
  [
    'lets client-safe tools pass the ceiling',
    { clientMode: true },
    tool('query_class', 'readonly', true),
    'query_class',
    null,
    [],
  ],
];

describe('the tool gate', () => {
  it.each(CASES)('%s', (_, options, gated, name, code, text) => {
    const refusal = toolGate(agent(options), name, gated, () => ['query_class']);
    expect(refusal?.code ?? null).toBe(code);
    for (const token of text) expect(refusal?.message).toContain(token);
  });
});

describe('the environment gates', () => {
  const open = readEnvironmentGates({
    PARSE_AGENT_ALLOW_WRITE_TOOLS: 'yes',
    PARSE_AGENT_ALLOW_RAW_CRUD: 'ON',
    PARSE_AGENT_ALLOW_SCHEMA_OPS: '1',
    PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
  });

  it('are closed by anything but 1, true, yes, on', () => {
    for (const value of ['', '0', 'false', 'y', 'enabled', ' true', 'truee', undefined]) {
      expect(readEnvironmentGates({ PARSE_AGENT_ALLOW_RAW_CRUD: value }).PARSE_AGENT_ALLOW_RAW_CRUD).toBe(
        false,
      );
    }
  });

  it('name only what is missing', () => {
    const half = readEnvironmentGates({ PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' });
    const refusal = envGate(agent({}), 'create_object', half);
    expect(refusal?.message).toBe(
      "Raw CRUD tool 'create_object' is disabled. Required: PARSE_AGENT_ALLOW_RAW_CRUD=true",
    );
    expect(envGate(agent({ allowMutations: false }), 'create_object', open)?.message).toContain(
      'allow_mutations: true (per-agent kwarg)',
    );
  });

  it('need both schema gates for class tools', () => {
    const refusal = envGate(agent({}), 'delete_class', readEnvironmentGates({}));
    expect(refusal?.message).toContain(
      'PARSE_AGENT_ALLOW_SCHEMA_OPS=true AND PARSE_AGENT_ALLOW_RAW_SCHEMA=true',
    );
    expect(envGate(agent({}), 'delete_class', open)).toBeNull();
  });

  it('leave other tools alone', () => {
    expect(envGate(agent({}), 'query_class', readEnvironmentGates({}))).toBeNull();
  });
});

const OPEN = readEnvironmentGates({
  PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: 'true',
});
const SHUT = readEnvironmentGates({
  PARSE_AGENT_ALLOW_RAW_CRUD: 'true',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: 'true',
});
const gate = (
  options: AgentDefinitionOptions,
  permission: 'readonly' | 'write' | 'admin',
  gates = OPEN,
  className = 'Post',
) =>
  methodGate(
    new Agent({ definition: compileAgentDefinition('x', options), principal: 'p' }),
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
