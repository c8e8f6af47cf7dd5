import 'reflect-metadata';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import {
  type Agent,
  McpRequest,
  type Identity,
  Refused,
  SubAgentError,
  type SubAgentOptions,
  TIERS,
} from '#core';
import { type AuditRecord, OperationLog } from '#audit';
import { AgentIntrospection, MetadataAudit, SubAgents, ToolCallbacks } from '#dispatcher';
import { Tool, type ToolCall, type ToolOutcome, ToolRunner } from '#tools';
import { type DeclaredFilters, loadConfig } from '#config';
import { openDatabase } from '#parley/instance';
import { startHttpService } from '../../../src/http-service.js';
import { callTool } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const post = (objectId: string, status: string, topic: string, readers: Record<string, object>) => ({
  objectId,
  status,
  topic,
  ACL: readers,
});
const ALL = { '*': { read: true } };
const EDITORS = { 'role:editors': { read: true } };
const SEED = {
  schemas: ['Post', 'Note', 'Vault'].map((className) => ({
    className,
    fields: { status: { type: 'String' }, topic: { type: 'String' } },
  })),
  users: ['ada', 'bob'].map((name) => ({ objectId: name, username: name, password: 'x' })),
  roles: [{ name: 'editors', users: ['ada'] }],
  objects: {
    Post: [
      post('p1', 'live', 'a', ALL),
      post('p2', 'live', 'b', ALL),
      post('p3', 'draft', 'a', ALL),
      post('p4', 'draft', 'b', EDITORS),
      post('p5', 'live', 'a', EDITORS),
    ],
    Note: [{ objectId: 'n1', status: 'live' }],
  },
};
const ADA: Identity = { kind: 'aclUser', userId: 'ada' };

interface Delegation {
  readonly options?: SubAgentOptions;
  readonly tool: string;
  readonly args: Record<string, unknown>;
}

/** What an application injects: it delegates to sub-agents, and listens. */
@Injectable()
class Delegating {
  /** Of the service that started last. */
  static latest: Delegating;
  readonly heard: string[] = [];
  readonly records: AuditRecord[] = [];
  readonly refusedWidenings: unknown[] = [];
  next: Delegation = { tool: 'list_tools', args: {} };
  context: McpRequest | null = null;

  constructor(
    @Inject(SubAgents) readonly subAgents: SubAgents,
    @Inject(ToolRunner) readonly runner: ToolRunner,
    @Inject(AgentIntrospection) readonly introspection: AgentIntrospection,
    @Inject(MetadataAudit) readonly metadata: MetadataAudit,
    @Inject(OperationLog) readonly log: OperationLog,
    @Inject(ToolCallbacks) callbacks: ToolCallbacks,
    @Inject(EventEmitter2) events: EventEmitter2,
  ) {
    Delegating.latest = this;
    callbacks
      .beforeToolCall(({ tool }) => this.heard.push(`before ${tool}`))
      .afterToolCall(({ tool }, { ok }) => this.heard.push(`after ${tool} ${String(ok)}`))
      .onError((error, { tool }) =>
        this.heard.push(`error ${tool} ${error instanceof Refused ? error.refusal.code : 'fault'}`),
      );
    events.on('parse.agent.tool_call', (record: AuditRecord) => this.records.push(record));
    events.on('parse.agent.subagent_widen_refused', (event: unknown) => this.refusedWidenings.push(event));
  }

  @Tool({ name: 'delegate', description: 'Lets a sub-agent work', input: { type: 'object' } })
  async delegate(_args: unknown, call: ToolCall) {
    this.context = call;
    const { options, tool, args } = this.next;
    const inner = await this.subAgents.delegate(call, options);
    return { outcome: await this.runner.run(tool, args, inner) };
  }
}

const AGENTS = {
  root: { permissions: 'admin' },
  live: { permissions: 'write', filters: { Post: { status: 'live' } }, classes: ['Post', 'Note'] },
  ada: { permissions: 'write', identity: { user: 'ada' } },
  asked: {},
  shy: { tools: { except: ['aggregate'] }, classes: { except: ['Note'] } },
};
const folder = makeFolder('sub-agents');
let topic: unknown = { topic: 'a' };
const FILTERS: DeclaredFilters = { asked: { Post: () => topic as Record<string, unknown> } };

function configure(more: { agents?: object; policy?: object } = {}) {
  const agents = Object.fromEntries(
    Object.entries({ ...AGENTS, ...more.agents }).map(([name, options]) => [
      name,
      { rateLimit: 1_000_000, ...options },
    ]),
  );
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  writeFileSync(
    join(folder, 'parley.yaml'),
    stringify({
      server: { port: 0 },
      database: { uri: 'embedded', seed: './seed.json' },
      agents,
      auth: Object.keys(agents).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: {
        unlistedClasses: 'allow',
        tokenCostPerMillionInput: 1000,
        classes: {
          Vault: { hidden: true },
          Post: { description: 'Posts', fields: ['status', 'topic'] },
        },
        ...more.policy,
      },
    }),
  );
  return loadConfig({}, folder, [], FILTERS);
}

async function start(more: Parameters<typeof configure>[0] = {}) {
  const loaded = configure(more);
  const database = await openDatabase(loaded.config);
  try {
    const service = await startHttpService(loaded, database.connection, {}, [Delegating]);
    // In this process the service would log into the test's own output.
    Logger.overrideLogger(false);
    const stop = () => service.close().then(() => database.close());
    return { url: service.url, stop };
  } catch (error) {
    await database.close();
    throw error;
  }
}

let service: Awaited<ReturnType<typeof start>>;
let self: Delegating;
beforeAll(async () => {
  service = await start();
  self = Delegating.latest;
});
afterAll(() => service.stop());
beforeEach(() => {
  for (const list of [self.heard, self.records, self.refusedWidenings]) list.length = 0;
});

const call = (agent: keyof typeof AGENTS, tool: string, args: object = {}) =>
  callTool(service, tool, args, { 'X-MCP-API-Key': `key-of-${agent}` });

/** What came of a tool that a sub-agent of the agent called. */
async function delegated(agent: keyof typeof AGENTS, delegation: Delegation): Promise<ToolOutcome> {
  self.next = delegation;
  const { text, isError } = await call(agent, 'delegate');
  if (isError) throw new Error(text);
  return (JSON.parse(text) as { outcome: ToolOutcome }).outcome;
}
/** The agent that a request of that name runs as. */
async function agentOf(name: keyof typeof AGENTS): Promise<Agent> {
  await delegated(name, { tool: 'list_tools', args: {} });
  return (self.context as McpRequest).agent;
}
const idsOf = (data: unknown): string[] =>
  ((data as { results?: { objectId: string }[] }).results ?? []).map(({ objectId }) => objectId).sort();
const readBy = async (agent: Agent): Promise<string[]> => {
  const outcome = await self.runner.run('query_class', { class_name: 'Post' }, new McpRequest(agent));
  return outcome.ok ? idsOf(outcome.data) : [];
};

describe('a sub-agent', () => {
  it('reads no row that its parent’s filter leaves out, whatever its own filter says', async () => {
    const filters = { Post: { status: 'draft' } };
    const outcome = await delegated('live', {
      options: { filters },
      tool: 'query_class',
      args: { class_name: 'Post' },
    });
    expect(outcome.ok && idsOf(outcome.data)).toEqual([]);
    const narrower = { filters: { Post: { topic: 'b' } } };
    const fewer = await delegated('live', {
      options: narrower,
      tool: 'query_class',
      args: { class_name: 'Post' },
    });
    expect(fewer.ok && idsOf(fewer.data)).toEqual(['p2']);
  });

  it('passes the same gates: a class outside its parent’s is outside its own', async () => {
    const outcome = await delegated('shy', { tool: 'query_class', args: { class_name: 'Note' } });
    expect(outcome).toMatchObject({ ok: false, refusal: { details: { kind: 'class_filter' } } });
    expect(await delegated('shy', { tool: 'aggregate', args: {} })).toMatchObject({
      refusal: { code: 'tool_filtered' },
    });
  });

  it('is recorded with its parent, the request and its depth', async () => {
    await delegated('live', { tool: 'count_objects', args: { class_name: 'Post' } });
    const [inner, outer] = self.records;
    expect(inner).toMatchObject({
      tool: 'count_objects',
      agent_depth: 1,
      classes_only: ['Note', 'Post'],
      filters: { Post: ['status'] },
    });
    expect(inner?.parent_agent_id).toBe(outer?.agent_id);
    expect(outer).toMatchObject({ tool: 'delegate', agent_depth: 0 });
  });

  it('acts as its parent’s user or less, never as the master key or as somebody else', async () => {
    const ada = await agentOf('ada');
    expect(await readBy(await self.subAgents.create(ada))).toEqual(await readBy(ada));
    const editors = await self.subAgents.create(ada, { identity: { kind: 'aclRole', role: 'editors' } });
    expect(await readBy(editors)).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
    for (const identity of [{ kind: 'master' }, { kind: 'aclUser', userId: 'bob' }] as const) {
      await expect(self.subAgents.create(ada, { identity })).rejects.toThrow(SubAgentError);
      await expect(self.subAgents.create(ada, { identity })).rejects.not.toThrow(/bob|editors/);
    }
    expect(self.refusedWidenings[0]).toMatchObject({ reason: 'child_master_key', parent_perm_count: 3 });
    expect(self.refusedWidenings[2]).toEqual({
      reason: 'child_extra_principals',
      parent_perm_count: 3,
      child_perm_count: 2,
      parent_perms: ['*', 'ada', 'role:editors'],
      child_perms: ['*', 'bob'],
      extra: ['bob'],
    });
  });

  it('may act as anybody below the master key, and its own sub-agents then only as that', async () => {
    const bob = await self.subAgents.create(await agentOf('root'), {
      identity: { kind: 'aclUser', userId: 'bob' },
    });
    expect(await readBy(bob)).toEqual(['p1', 'p2', 'p3']);
    await expect(self.subAgents.create(bob, { identity: ADA })).rejects.toThrow(SubAgentError);
  });

  it('never reads a row, lists a tool or meets a class that its parent does not, with any options of both', async () => {
    const names = ['Post', 'Note', 'Vault'];
    const list = (from: string[]) => fc.option(fc.subarray(from), { nil: undefined });
    const options = fc.record(
      {
        permissions: fc.constantFrom(...TIERS),
        classes: fc.record({ only: list(names), except: list(names) }),
        tools: fc.record({ only: list(['query_class', 'count_objects']), except: list(['query_class']) }),
        filters: fc.constantFrom<NonNullable<SubAgentOptions['filters']>>(
          { Post: { status: 'live' } },
          { Post: { topic: 'a' } },
          { default: { status: 'draft' } },
        ),
        identity: fc.constantFrom<Identity>(
          ADA,
          { kind: 'aclUser', userId: 'bob' },
          { kind: 'master' },
          { kind: 'aclRole', role: 'editors' },
        ),
      },
      { requiredKeys: [] },
    );
    const root = await agentOf('root');
    let compared = 0;
    const child = async (parent: Agent, told: SubAgentOptions) => {
      try {
        return await self.subAgents.create(parent, told);
      } catch (error) {
        // Refused is narrower than anything.
        if (error instanceof SubAgentError) return null;
        throw error;
      }
    };
    await fc.assert(
      fc.asyncProperty(options, options, async (first, second) => {
        const parent = await child(root, first);
        const below = parent && (await child(parent, second));
        if (!parent || !below) return;
        compared += 1;
        const rows = await readBy(parent);
        for (const id of await readBy(below)) expect(rows).toContain(id);
        const tools = self.runner.list({ agent: parent });
        for (const tool of self.runner.list({ agent: below })) expect(tools).toContain(tool);
        for (const class_name of names) {
          const [above, asked] = await Promise.all(
            [parent, below].map((agent) =>
              self.introspection.wouldPermit(agent, 'query_class', { class_name, op: 'find' }),
            ),
          );
          if (asked?.allowed) expect(above?.allowed).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
    expect(compared).toBeGreaterThan(5);
  });
});

describe('a filter that is a function', () => {
  it('is asked on every call', async () => {
    topic = { topic: 'a' };
    expect(idsOf((await call('asked', 'query_class', { class_name: 'Post' })).data)).toEqual([
      'p1',
      'p3',
      'p5',
    ]);
    topic = { topic: 'b' };
    expect(idsOf((await call('asked', 'query_class', { class_name: 'Post' })).data)).toEqual(['p2', 'p4']);
  });

  it('refuses every read while it gives no constraint, and says nothing of why', async () => {
    topic = null;
    for (const [tool, args] of [
      ['query_class', {}],
      ['count_objects', {}],
      ['get_object', { object_id: 'p1' }],
      ['aggregate', { pipeline: [{ $match: { status: 'live' } }] }],
    ] as const) {
      const answer = await call('asked', tool, { class_name: 'Post', ...args });
      expect(answer).toMatchObject({ isError: true, code: 'access_denied' });
      expect(answer.wire).not.toContain('constraint object');
    }
    topic = { topic: 'a' };
  });

  it('is refused for an agent that does not exist, and for a class the file constrains', () => {
    const load = (filters: DeclaredFilters) => () => {
      configure();
      return loadConfig({}, folder, [], filters);
    };
    expect(load({ nobody: { Post: () => ({}) } })).toThrow(/agents\.nobody/);
    expect(load({ live: { Post: () => ({}) } })).toThrow(/agents\.live\.filters\.Post/);
    expect(load({ shy: { Post: { topic: { $nope: 1 } } } })).toThrow(/agents\.shy\.filters\.Post/);
  });
});

describe('introspection', () => {
  it('describes an agent by names, never by values', async () => {
    const described = await self.introspection.describe({ agent: await agentOf('live') });
    expect(described).toMatchObject({
      permissions: 'write',
      auth: { mode: 'master_key' },
      classes: { only: ['Note', 'Post'], except: null },
      methods: null,
      filters: { Post: ['status'] },
      strict_modes: { tool_filter: false, class_filter: false },
      prompt: { version: '1.0.0' },
      per_class: {
        Post: {
          accessible: 'permitted',
          agent_fields: ['status', 'topic'],
          per_agent_filter: ['status'],
        },
        Note: { accessible: 'permitted', agent_fields: null, per_agent_filter: null },
      },
    });
    expect(described.hidden_classes).toContain('Vault');
    expect(described.tools.effective).toContain('query_class');
    expect(described.tools.effective).not.toContain('create_object');
    expect(JSON.stringify(described)).not.toContain('"live"');
  });

  it('says why a class is out of reach', async () => {
    const agent = await agentOf('live');
    const { introspection } = self;
    expect(await introspection.describeFor(agent, 'Vault')).toMatchObject({ accessible: 'hidden' });
    expect(await introspection.describeFor(agent, 'User')).toMatchObject({
      class_name: '_User',
      accessible: 'class_filter_excluded',
    });
    await expect(introspection.describeFor(agent, 'a b')).rejects.toThrow(TypeError);
  });

  it.each<[keyof typeof AGENTS, string, object, object]>([
    ['live', 'query_class', { class_name: 'Post' }, { allowed: true }],
    [
      'live',
      'query_class',
      { class_name: 'Vault' },
      { reason: 'hidden_class', denied_at: 'assert_class_accessible!' },
    ],
    [
      'live',
      'query_class',
      { class_name: 'User' },
      { reason: 'class_filter', denied_at: 'assert_class_accessible!' },
    ],
    ['live', 'query_class', { class_name: 'a b' }, { reason: 'invalid_argument' }],
    ['live', 'delete_object', {}, { reason: 'tool_filtered', denied_at: 'allowed_tools' }],
    ['live', 'create_object', {}, { reason: 'write_env_gate_disabled', denied_at: 'write_env_gate' }],
    ['root', 'create_class', {}, { reason: 'schema_env_gate_disabled', denied_at: 'schema_env_gate' }],
    ['shy', 'aggregate', {}, { reason: 'tool_filtered' }],
    ['live', 'nothing_such', {}, { reason: 'tool_filtered' }],
    ['live', 'call_method', { class_name: 'Post', method_name: 'x' }, { reason: 'method_filtered' }],
  ])('would permit %s %s %j: %j', async (agent, tool, question, answer) => {
    const asked = await self.introspection.wouldPermit(await agentOf(agent), tool, question);
    expect(asked).toMatchObject(answer);
  });

  it('answers as the call itself would be answered', async () => {
    for (const name of ['live', 'shy', 'ada', 'root'] as const) {
      const agent = await agentOf(name);
      for (const class_name of ['Post', 'Note', 'Vault', '_User', '_Session', 'Missing']) {
        const asked = await self.introspection.wouldPermit(agent, 'count_objects', {
          class_name,
          op: 'count',
        });
        const { isError } = await call(name, 'count_objects', { class_name });
        expect([name, class_name, asked.allowed]).toEqual([name, class_name, !isError]);
      }
    }
  });

  it('audits the classes that agents see, without hidden and system ones', async () => {
    const lines: string[] = [];
    const found = await self.metadata.summarize((line) => lines.push(line));
    expect(found).toEqual({
      classes_audited: 2,
      visible_classes_declared: false,
      missing_class_descriptions: ['Note'],
      missing_field_descriptions: { Note: ['status', 'topic'], Post: ['status', 'topic'] },
      unresolvable_allowlist_entries: {},
      canonical_filter_summary: {},
    });
    expect(lines).toContain('classes audited: 2');
  });
});

describe('what is written down of a call', () => {
  it('says what the result costs, who called and how it ended, to record, log and callbacks alike', async () => {
    await call('live', 'count_objects', { class_name: 'Post' });
    await call('live', 'count_objects', { class_name: 'Vault' });
    const { records, heard, log } = self;
    expect(records).toMatchObject([
      { tool: 'count_objects', success: true, agent_name: 'live', est_input_tokens: expect.any(Number) },
      { success: false, error_code: 'access_denied', error_class: 'Refused', denial_kind: 'hidden_class' },
    ]);
    expect(records[0]?.est_cost_usd).toBeCloseTo((records[0]?.est_input_tokens ?? 0) / 1000, 6);
    expect(heard).toEqual([
      'before count_objects',
      'after count_objects true',
      'before count_objects',
      'error count_objects access_denied',
    ]);
    expect(log.all().slice(-2)).toMatchObject([
      { tool: 'count_objects', success: true, args: { class_name: 'Post' } },
      { tool: 'count_objects', success: false, error_code: 'access_denied' },
    ]);
  });

  it('emits no event of a beginning for a call that a gate refused', async () => {
    await call('shy', 'aggregate', { class_name: 'Post', pipeline: [] });
    expect(self.heard).toEqual(['error aggregate tool_filtered']);
  });
});

describe('names that nothing has', () => {
  const startAndStop = async (more: Parameters<typeof configure>[0]) => (await start(more)).stop();

  it('are warned of and kept', async () => {
    await expect(
      startAndStop({ agents: { typo: { tools: ['qeury_class'], classes: ['Psot'] } } }),
    ).resolves.toBeUndefined();
  });

  it('stop the start where names are strict, all at once', async () => {
    const agents = {
      typo: { tools: ['qeury_class', 'delegate'], classes: { only: ['Psot', 'User'], except: ['Nowhere'] } },
    };
    const policy = { strictToolFilter: true, strictClassFilter: true };
    await expect(startAndStop({ agents, policy })).rejects.toThrow(/qeury_class[\s\S]*Psot/);
    await expect(startAndStop({ agents, policy })).rejects.not.toThrow(/delegate|User|Nowhere/);
    const lenient = { typo: { ...agents.typo, strictToolFilter: false, strictClassFilter: false } };
    await expect(startAndStop({ agents: lenient, policy })).resolves.toBeUndefined();
  });

  it('are refused in a sub-agent as its own strictness says', async () => {
    const parent = await agentOf('root');
    const { subAgents } = self;
    await expect(subAgents.create(parent, { tools: ['nope'], strictToolFilter: true })).rejects.toThrow(
      /nope/,
    );
    await expect(subAgents.create(parent, { tools: ['nope'] })).resolves.toBeDefined();
    await expect(subAgents.create(parent, { filters: { Post: { a: { $nope: 1 } } } })).rejects.toThrow(
      /filters\.Post/,
    );
  });
});
