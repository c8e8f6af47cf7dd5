import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  Agent,
  type AgentDefinition,
  type AgentDefinitionOptions,
  compileAgentDefinition,
  MASTER,
} from '#core';
import { compilePolicy, readEnvironmentGates, mayUse } from '#policy';
import { BUILT_IN_TOOLS, toolDeclarations } from '#tools';
import { editConfiguration } from './configuration-edits.js';
import { budgetWindow, type NarrowedAgent, narrowAgents } from './narrowed-agents.js';
import { UseOfRecords } from './recorded-use.js';

const TOOLS = BUILT_IN_TOOLS.flatMap((provider) => toolDeclarations(provider.prototype)).map(
  ({ definition }) => definition,
);
const TOOL_NAMES = TOOLS.map(({ name }) => name);
const CLASSES = ['Order', 'Customer', 'Review', '_User'];
const GATES = readEnvironmentGates({
  PARSE_AGENT_ALLOW_WRITE_TOOLS: '1',
  PARSE_AGENT_ALLOW_RAW_CRUD: '1',
  PARSE_AGENT_ALLOW_SCHEMA_OPS: '1',
  PARSE_AGENT_ALLOW_RAW_SCHEMA: '1',
});

const names = (all: readonly string[]) => fc.uniqueArray(fc.constantFrom(...all));
const filter = (all: readonly string[]) =>
  fc.oneof(
    fc.constant(undefined),
    names(all),
    fc.record({ only: names(all) }),
    fc.record({ except: names(all) }),
    fc.record({ only: names(all), except: names(all) }),
  );
const OPTIONS: fc.Arbitrary<AgentDefinitionOptions> = fc
  .record(
    {
      permissions: fc.constantFrom('readonly' as const, 'write' as const, 'admin' as const),
      tools: filter(TOOL_NAMES),
      classes: filter(CLASSES),
      allowMutations: fc.boolean(),
      clientMode: fc.boolean(),
      budget: fc.option(
        fc.record({ rows: fc.integer({ min: 1, max: 500 }), window: fc.constantFrom(60, 3600) }),
      ),
    },
    { requiredKeys: [] },
  )
  .map((options) => JSON.parse(JSON.stringify(options)) as AgentDefinitionOptions);

const POLICY = fc
  .record({
    bypass: names(['readonly', 'write', 'admin']),
    scoped: fc.boolean(),
    masked: fc.constantFrom(undefined, 'hash', { admin: 'none', write: 'mask', readonly: 'drop' }),
  })
  .map(({ bypass, scoped, masked }) => {
    const { policy } = compilePolicy({
      maskingKey: 'k'.repeat(40),
      classes: {
        Order: {
          fields: ['number', 'customer'],
          ...(scoped && { tenantScope: { field: 'orgId', bypass } }),
          ...(masked !== undefined && { masks: { number: masked } }),
        },
      },
    } as never);
    return policy;
  });

const RECORD = fc.record({
  type: fc.constant('tool_call'),
  at: fc.integer({ min: 0, max: 20_000 }).map((seconds) => new Date(1.7e12 + seconds * 1000).toISOString()),
  agent_name: fc.constantFrom('one', 'two', 'gone'),
  agent_depth: fc.constantFrom(0, 0, 0, 0, 0, 1),
  principal: fc.constantFrom('key:a', 'key:b'),
  tool: fc.constantFrom(...TOOL_NAMES, 'send_mail', 'prompt:digest'),
  args_keys: fc.constant(['class_name']),
  class_name: fc.constantFrom(...CLASSES),
  joined_classes: fc.oneof(fc.constant(undefined), fc.uniqueArray(fc.constantFrom(...CLASSES))),
  success: fc.boolean(),
  error_code: fc.constantFrom('timeout', 'access_denied', 'tool_filtered', 'rate_limited'),
  rows: fc.integer({ min: 0, max: 100 }),
  duration_ms: fc.integer({ min: 1, max: 900 }),
});
type Recorded = typeof RECORD extends fc.Arbitrary<infer One> ? One : never;

const narrower = (options: AgentDefinitionOptions, narrowed: NarrowedAgent | undefined): AgentDefinition =>
  compileAgentDefinition('one', {
    ...options,
    ...Object.fromEntries((narrowed?.narrowings ?? []).map(({ option, value }) => [option, value])),
  });
const agentOf = (definition: AgentDefinition) =>
  new Agent({ definition, identity: MASTER, tenantId: null, principal: 'key:a' });

/** What the gates of an agent say, by the code that serves calls. */
function surface(definition: AgentDefinition) {
  const agent = agentOf(definition);
  return {
    tool: (name: string) => {
      const tool = TOOLS.find((one) => one.name === name);
      // Tools of an application ask the filter alone.
      return tool ? mayUse(agent, tool, GATES) : definition.tools.permits(name);
    },
    class: (name: string) => definition.classes.permits(name),
  };
}

/** Whether a budget would refuse one of the calls, which are charged at their end. */
function refusesRows({ budget }: AgentDefinition, records: readonly Recorded[]): boolean {
  if (budget?.limits.rows === undefined) return false;
  const { window } = budget;
  const limit = budget.limits.rows;
  const times = records.map((one) => ({ ...one, end: Date.parse(one.at) / 1000 }));
  return times.some(({ end, principal }) => {
    // A use counts for up to one step longer than the window.
    const counted = times.filter(
      (other) => other.principal === principal && other.end <= end && other.end > end - window * 1.05,
    );
    return counted.reduce((sum, { rows }) => sum + rows, 0) >= limit;
  });
}

const ran = ({ success, error_code: code }: Recorded) => success || code === 'timeout';

describe('a suggested policy', () => {
  it('permits every recorded call that passed, and nothing that the present policy refuses', () => {
    fc.assert(
      fc.property(
        OPTIONS,
        POLICY,
        fc.array(RECORD, { maxLength: 40 }),
        fc.boolean(),
        (options, policy, records, namedClasses) => {
          const present = compileAgentDefinition('one', options);
          const agents = new Map([
            ['one', present],
            ['two', compileAgentDefinition('two', {})],
          ]);
          const use = new UseOfRecords(agents.keys(), (name) => budgetWindow(agents.get(name) ?? present));
          for (const record of records) use.add(record);
          const narrowed = narrowAgents(agents, policy, use.result(), {
            tools: new Map(TOOLS.map((tool) => [tool.name, tool])),
            builtIn: new Set(TOOL_NAMES),
            namedClasses,
            people: new Set(),
          }).find(({ agent }) => agent === 'one');
          const suggested = narrower(options, narrowed);
          const [before, after] = [surface(present), surface(suggested)];
          for (const name of [...TOOL_NAMES, 'send_mail'])
            expect([name, after.tool(name) && !before.tool(name)]).toEqual([name, false]);
          for (const name of CLASSES)
            expect([name, after.class(name) && !before.class(name)]).toEqual([name, false]);
          const own = records.filter(
            ({ agent_name: name, agent_depth: depth }) => name === 'one' || depth > 0,
          );
          for (const { tool, class_name: named, joined_classes: joined = [] } of own.filter(ran)) {
            if (tool.startsWith('prompt:') || !before.tool(tool)) continue;
            expect([tool, after.tool(tool)]).toEqual([tool, true]);
            for (const name of [named, ...joined])
              expect([name, before.class(name) && !after.class(name)]).toEqual([name, false]);
          }
          if (!refusesRows(present, own)) expect(refusesRows(suggested, own)).toBe(false);
          // What masks and tenants make of a permission level is never exchanged for something else.
          for (const { masks, tenantScope } of policy.classes.values()) {
            const [old, now] = [present.permissions, suggested.permissions];
            if (old === now) continue;
            for (const tiers of masks.values()) expect(tiers[now]).toEqual(tiers[old]);
            const bypass = tenantScope?.bypass as readonly string[] | undefined;
            expect(bypass?.includes(now)).toBe(bypass?.includes(old));
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

/** What somebody who can write to the file of the records may write there. */
const HOSTILE = fc.record(
  {
    type: fc.constantFrom('tool_call', 'export_read'),
    at: fc.constantFrom('2026-01-01T00:00:00.000Z', '2020 (\u009B31m)', '+100000-01-01T00:00:00Z'),
    agent_name: fc.constant('one'),
    agent_depth: fc.constantFrom<unknown>(0, 1, 'x'),
    principal: fc.constantFrom<unknown>('key:a', '__proto__', {}),
    tool: fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(...TOOL_NAMES, '${HOME}', '__proto__', 'a: b\u202E'),
    ),
    args_keys: fc.constantFrom<unknown>(['class_name'], 'class_name', {}),
    class_name: fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom<unknown>('Order', '${HOME}', '\u009B31m', [], 'x]: y'),
    ),
    joined_classes: fc.oneof(
      fc.array(
        fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom<unknown>('__proto__', 'x]: y', {}, null)),
      ),
      fc.constantFrom<unknown>('Order', {}, { length: 1e9 }, null),
    ),
    success: fc.constant(true),
    rows: fc.constantFrom<unknown>(1, 0.5, -1, 1e308, Number.MAX_SAFE_INTEGER, '7'),
    duration_ms: fc.constantFrom<unknown>(1, -1, 1e308, 'x'),
  },
  { requiredKeys: ['type', 'at', 'agent_name', 'tool', 'success'] },
);

describe('hostile records', () => {
  it('put nothing but names and whole numbers into a configuration', () => {
    const text = 'agents:\n  one: {}\n';
    fc.assert(
      fc.property(fc.array(HOSTILE, { maxLength: 12 }), (records) => {
        const agents = new Map([['one', compileAgentDefinition('one', {})]]);
        const use = new UseOfRecords(agents.keys(), () => 3600);
        for (const record of records) use.add(record);
        const narrowed = narrowAgents(agents, compilePolicy({}).policy, use.result(), {
          tools: new Map(TOOLS.map((tool) => [tool.name, tool])),
          builtIn: new Set(TOOL_NAMES),
          namedClasses: true,
          people: new Set(),
        });
        const edited = editConfiguration('parley.yaml', text, narrowed);
        expect(edited.text).toMatch(/^[ -~\n]*$/);
        expect(edited.text).not.toContain('${');
        const { one } = (parse(edited.text) as { agents: Record<string, AgentDefinitionOptions> }).agents;
        const { tools, classes, budget } = (one ?? {}) as Record<
          'tools' | 'classes',
          string[] | undefined
        > & {
          readonly budget?: { readonly rows: number };
        };
        for (const name of tools ?? []) expect(name).toMatch(/^[A-Za-z0-9_.-]+$/);
        for (const name of classes ?? []) expect(name).toMatch(/^\w+$/);
        if (budget) expect(Number.isSafeInteger(budget.rows)).toBe(true);
        compileAgentDefinition('one', one ?? {});
      }),
      { numRuns: 500 },
    );
  });
});

describe('an agent without a call', () => {
  it('may be removed, unless it is named as one that approves or operates', () => {
    const agents = new Map(['idle', 'chief'].map((name) => [name, compileAgentDefinition(name, {})]));
    const use = new UseOfRecords(agents.keys(), () => 3600);
    const narrowed = narrowAgents(agents, compilePolicy({}).policy, use.result(), {
      tools: new Map(TOOLS.map((tool) => [tool.name, tool])),
      builtIn: new Set(TOOL_NAMES),
      namedClasses: false,
      people: new Set(['chief']),
    });
    expect(narrowed.map(({ left }) => left.join())).toEqual([
      expect.stringContaining('remove it'),
      expect.stringContaining('keep it'),
    ]);
  });
});

describe('classes of an agent', () => {
  const suggestionFor = (records: object[], namedClasses = false) => {
    const agents = new Map([['one', compileAgentDefinition('one', {})]]);
    const use = new UseOfRecords(agents.keys(), () => 3600);
    const base = {
      type: 'tool_call',
      at: '2026-01-01T00:00:00.000Z',
      agent_name: 'one',
      agent_depth: 0,
      success: true,
    };
    for (const record of records) use.add({ ...base, ...record });
    const [narrowed] = narrowAgents(agents, compilePolicy({}).policy, use.result(), {
      tools: new Map(TOOLS.map((tool) => [tool.name, tool])),
      builtIn: new Set(TOOL_NAMES),
      namedClasses,
      people: new Set(),
    });
    return { narrowed, recorded: use.result() };
  };
  const classes = ({ narrowed }: ReturnType<typeof suggestionFor>) =>
    narrowed?.narrowings.find(({ option }) => option === 'classes')?.value;
  const schema = { tool: 'get_schema', args_keys: ['class_name'], class_name: 'User' };
  const query = { tool: 'query_class', args_keys: ['class_name'], class_name: 'Order' };

  it('are those that calls named, where no call can have reached others', () => {
    expect(classes(suggestionFor([schema]))).toEqual(['_User']);
  });

  it('are left where a call may have joined others, unless the operator says that none did', () => {
    const left = suggestionFor([schema, query]);
    expect(classes(left)).toBeUndefined();
    expect(left.narrowed?.left.join('\n')).toMatch(/classes: calls of query_class may have used columns/);
    expect(classes(suggestionFor([schema, query], true))).toEqual(['Order', '_User']);
  });

  it('are also those that calls joined, and are left where a record does not name them all', () => {
    const joining = { ...query, joined_classes: ['Author', 'User'] };
    expect(classes(suggestionFor([joining], true))).toEqual(['Author', 'Order', '_User']);
    const cut = suggestionFor([{ ...query, joined_classes: ['Author', '…'] }], true);
    expect(classes(cut)).toBeUndefined();
    expect(cut.narrowed?.left.join('\n')).toContain('not all that a call joined');
    for (const malformed of ['Author', { 0: 'Author' }, null])
      expect(classes(suggestionFor([{ ...query, joined_classes: malformed }], true))).toBeUndefined();
    const refused = { ...joining, success: false, error_code: 'access_denied' };
    expect(classes(suggestionFor([query, refused], true))).toEqual(['Order']);
  });

  it('are left where there are more than are counted', () => {
    const many = Array.from({ length: 10_001 }, (_, index) => ({ ...query, class_name: `Class${index}` }));
    expect(classes(suggestionFor(many.slice(1), true))).toHaveLength(10_000);
    expect(classes(suggestionFor(many, true))).toBeUndefined();
  });

  it('are left where records name none, and their number is printed', () => {
    const { class_name: _, ...unnamed } = query;
    const before = suggestionFor([unnamed, schema], true);
    expect(before.recorded.unnamed).toBe(1);
    expect(classes(before)).toBeUndefined();
    expect(before.narrowed?.left.join('\n')).toContain('records name none');
  });
});
