import 'reflect-metadata';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { type Agent, Unauthorized } from '#core';
import type { AuditRecord } from '#audit';
import { AgentIntrospection, ToolCallbacks } from '#dispatcher';
import { Tool, type ToolCall } from '#tools';
import { loadConfig } from '#config';
import { openDatabase } from '#parley/instance';
import { startHttpService } from '../../../src/http-service.js';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { decideApproval } from '../../support/decide-approval.js';
import { askModern, FOLLOWS_TASKS } from '../../support/modern-call.js';
import { type Answer, callTool } from '../../support/service.js';
import { makeFolder } from '../../support/started.js';

const ASKABLE = { ...FOLLOWS_TASKS, elicitation: { form: {} } };
const WAIT = { timeout: 60_000, interval: 20 };

/** An application that listens to everything, with tools that end in every way there is. */
@Injectable()
class Listening {
  static latest: Listening;
  readonly recorded: AuditRecord[] = [];
  readonly executed: AuditRecord[] = [];
  readonly heard: string[] = [];
  /** Lets `waits` end. */
  release: () => void = () => undefined;
  /** Of the last report. */
  agent: Agent | undefined;
  private gate = Promise.resolve();

  constructor(
    @Inject(EventEmitter2) events: EventEmitter2,
    @Inject(ToolCallbacks) callbacks: ToolCallbacks,
    @Inject(AgentIntrospection) readonly introspection: AgentIntrospection,
  ) {
    Listening.latest = this;
    events.on('parley.audit', (record: AuditRecord) => this.recorded.push(record));
    events.on('parse.agent.tool_call', (record: AuditRecord) => this.executed.push(record));
    callbacks
      .beforeToolCall(({ tool }) => this.heard.push(`before ${tool}`))
      .afterToolCall(({ tool }) => this.heard.push(`after ${tool}`));
  }

  hold(): void {
    this.gate = new Promise((resolve) => (this.release = () => resolve()));
  }

  @Tool({ name: 'asks', description: 'Asks its client', task: 'optional', input: { type: 'object' } })
  async asks(_args: unknown, call: ToolCall) {
    return { answer: await call.ask('sure', { kind: 'form', message: 'Sure?', schema: FORM }) };
  }

  @Tool({ name: 'waits', description: 'Waits', task: 'optional', input: { type: 'object' } })
  async waits() {
    await this.gate;
    return { waited: true };
  }

  @Tool({
    name: 'guarded',
    description: 'Waits for a person first',
    permission: 'admin',
    task: 'optional',
    input: { type: 'object' },
  })
  async guarded() {
    await this.gate;
    return { waited: true };
  }

  @Tool({ name: 'reports', description: 'Reports its progress', input: { type: 'object' } })
  reports({ progress }: Record<string, unknown>, call: ToolCall) {
    this.agent = call.agent;
    call.progress({ progress: progress as number });
    return { told: true };
  }

  @Tool({ name: 'expelled', description: 'Loses its session', input: { type: 'object' } })
  expelled() {
    throw new Unauthorized('the session ended');
  }
}
const FORM = { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] } as const;

const AGENTS = {
  reader: { tenantId: 'acme', rateLimit: 1_000_000 },
  frugal: { tenantId: 'acme', rateLimit: 1_000_000, budget: { calls: 1, window: 3600 } },
  keeper: { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000 },
  single: { tenantId: 'acme', rateLimit: 1, rateWindow: 3600 },
  ada: { permissions: 'admin', identity: { user: 'u1' }, tenantId: 'acme' },
  client: {
    clientMode: true,
    permissions: 'write',
    identity: { session: 'caller' },
    tenantId: 'acme',
    tools: { except: ['get_object'] },
  },
};

const LOCKED = {
  className: 'Locked',
  fields: { x: { type: 'Number' } },
  classLevelPermissions: { find: { '*': true }, update: {}, delete: { u1: true } },
};
const SEED = { ...POSTS_SEED, schemas: [...POSTS_SEED.schemas, LOCKED] };
const GATES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'on', PARSE_AGENT_ALLOW_RAW_CRUD: 'on' };

const folder = makeFolder('call-records');
let service: { url: string; stop: () => Promise<unknown> };
let self: Listening;
beforeAll(async () => {
  writeFileSync(join(folder, 'seed.json'), JSON.stringify(SEED));
  writeFileSync(
    join(folder, 'parley.yaml'),
    stringify({
      server: { port: 0 },
      database: { uri: 'embedded', seed: './seed.json' },
      agents: AGENTS,
      auth: Object.keys(AGENTS).map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: { ...POSTS_POLICY, requireApprovalFor: ['admin'] },
      approvals: { mode: 'desk', approvers: ['ada'] },
      tasks: { concurrency: 1 },
    }),
  );
  const loaded = loadConfig({}, folder);
  const database = await openDatabase(loaded.config);
  const running = await startHttpService(loaded, database.connection, GATES, [Listening]);
  // In this process the service would log into the test's own output.
  Logger.overrideLogger(false);
  service = { url: running.url, stop: () => running.close().then(() => database.close()) };
  self = Listening.latest;
});
afterAll(() => service.stop());
beforeEach(() => {
  for (const list of [self.recorded, self.executed, self.heard]) list.length = 0;
});
afterEach(() => self.release());

const key = (agent: keyof typeof AGENTS) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const modern = (
  method: string,
  params: Record<string, unknown>,
  capabilities: object,
  agent: keyof typeof AGENTS = 'reader',
) => askModern(service, method, params, key(agent), capabilities);
const resultOf = ({ body }: Answer) => body['result'] as { taskId: string; status: string };
const begin = async (name: string, capabilities: object = FOLLOWS_TASKS, agent?: keyof typeof AGENTS) =>
  resultOf(await modern('tools/call', { name, arguments: {} }, capabilities, agent));
const statusOf = async (taskId: string, agent?: keyof typeof AGENTS) =>
  resultOf(await modern('tasks/get', { taskId }, ASKABLE, agent)).status;
const cancel = (taskId: string) => modern('tasks/cancel', { taskId }, FOLLOWS_TASKS);

describe('the event of a tool call', () => {
  it('is emitted for calls that reached their tool, refusals of the tool included', async () => {
    await callTool(service, 'count_objects', { class_name: 'Post' }, key('reader'));
    await callTool(service, 'count_objects', { class_name: 'Contract' }, key('reader'));
    expect(self.executed).toMatchObject([
      { tool: 'count_objects', success: true },
      { tool: 'count_objects', success: false, denial_kind: 'hidden_class' },
    ]);
    expect(self.recorded).toEqual(self.executed);
  });

  it('is none for what a gate refused, which is recorded all the same', async () => {
    await callTool(service, 'create_object', {}, key('reader'));
    await callTool(service, 'list_tools', {}, key('single'));
    await callTool(service, 'list_tools', {}, key('single'));
    expect(self.executed).toMatchObject([{ tool: 'list_tools', success: true }]);
    expect(self.recorded.map(({ error_code: code }) => code)).toEqual([
      'permission_denied',
      undefined,
      'rate_limited',
    ]);
  });
});

describe('the classes that a call joined', () => {
  const joined = async (tool: string, args: object, agent: keyof typeof AGENTS = 'reader') => {
    self.recorded.length = 0;
    await callTool(service, tool, { class_name: 'Post', limit: 1, ...args }, key(agent));
    return self.recorded.map(({ class_name, joined_classes: others }) => [class_name, others]);
  };
  const lookup = (from: string) => [
    { $lookup: { from, localField: 'author', foreignField: 'objectId', as: 'found' } },
  ];
  const pipeline = (stages: object[]) => ({ limit: undefined, pipeline: stages });

  it('are recorded, however it reached them', async () => {
    const author = { __type: 'Pointer', className: 'Author', objectId: 'a1' };
    const inQuery = { $inQuery: { className: 'Author', where: { name: 'Ann' } } };
    for (const [tool, args] of [
      ['query_class', { include: ['author'] }],
      ['query_class', { where: { author } }],
      ['query_class', { where: { $or: [{ author: inQuery }, { likes: 1 }] } }],
      ['aggregate', pipeline(lookup('Author'))],
      ['aggregate', pipeline([{ $unionWith: { coll: 'Author' } }])],
    ] as const)
      expect([tool, args, await joined(tool, args)]).toEqual([tool, args, [['Post', ['Author']]]]);
    expect(await joined('query_class', { where: { likes: 1 } })).toEqual([['Post', undefined]]);
  });

  it('are never a name that the agent made up, or a class that it may not use', async () => {
    for (const name of ['Contract', 'NoSuchClass', '_Session', 'r:0123456789', 'A'.repeat(200)]) {
      expect(await joined('aggregate', pipeline(lookup(name)))).toEqual([['Post', undefined]]);
      expect(await joined('query_class', { where: { author: { $inQuery: { className: name } } } })).toEqual([
        ['Post', undefined],
      ]);
      expect(JSON.stringify(self.recorded)).not.toContain(name);
    }
    expect(await joined('query_class', { include: ['contract'] })).toEqual([['Post', undefined]]);
  });
});

describe('every outcome of a call', () => {
  it('is recorded once when the protocol answers it: a lost session, a client that cannot be asked', async () => {
    const lost = await callTool(service, 'expelled', {}, key('reader'));
    expect(lost.rpcError).toEqual({ code: -32001, message: 'Unauthorized' });
    const silent = await modern('tools/call', { name: 'asks', arguments: {} }, {});
    expect(silent.body.error?.code).toBe(-32021);
    expect(self.recorded).toMatchObject([
      { tool: 'expelled', success: false, error_code: 'access_denied', error_class: 'Unauthorized' },
      { tool: 'asks', success: false, error_code: 'not_implemented', error_class: 'ProtocolError' },
    ]);
    expect(lost.wire).not.toContain('session ended');
  });

  it('is recorded once for a task that is cancelled while it waits for its client', async () => {
    const { taskId } = await begin('asks', ASKABLE);
    await vi.waitFor(async () => expect(await statusOf(taskId)).toBe('input_required'), WAIT);
    expect(self.recorded).toEqual([]);
    await cancel(taskId);
    await cancel(taskId);
    expect(await statusOf(taskId)).toBe('cancelled');
    expect(self.recorded).toMatchObject([
      { tool: 'asks', success: false, error_code: 'cancelled', agent_name: 'reader', tenant_id: 'acme' },
    ]);
  });

  it('is recorded once for a task that is cancelled before a worker was free, and never runs', async () => {
    self.hold();
    const busy = await begin('waits');
    await vi.waitFor(() => expect(self.heard).toEqual(['before waits']), WAIT);
    const waiting = await begin('waits');
    await cancel(waiting.taskId);
    expect(self.recorded).toMatchObject([{ tool: 'waits', error_code: 'cancelled' }]);
    expect(self.executed).toEqual([]);
    self.release();
    await vi.waitFor(async () => expect(await statusOf(busy.taskId)).toBe('completed'), WAIT);
    expect(self.recorded.map(({ success }) => success)).toEqual([false, true]);
    expect(self.heard).toEqual(['before waits', 'after waits']);
  });
});

describe('a call that goes on as a task', () => {
  it('counts once against the calls of a budget', async () => {
    self.hold();
    const { taskId } = await begin('waits', FOLLOWS_TASKS, 'frugal');
    self.release();
    await vi.waitFor(async () => expect(await statusOf(taskId, 'frugal')).toBe('completed'), WAIT);
    expect(self.recorded).toMatchObject([{ tool: 'waits', success: true, agent_name: 'frugal' }]);
    const second = await callTool(service, 'waits', {}, key('frugal'));
    expect(second).toMatchObject({ code: 'rate_limited', details: { kind: 'budget' } });
  });

  it('names its approver on the record of its run', async () => {
    self.hold();
    const beginning = begin('guarded', FOLLOWS_TASKS, 'keeper');
    const desk = new URL('/approvals', service.url);
    const caseId = await vi.waitFor(async () => {
      const listed = (await (await fetch(desk, { headers: key('ada') })).json()) as {
        approvals: { id: string }[];
      };
      expect(listed.approvals).toHaveLength(1);
      return listed.approvals[0]?.id;
    }, WAIT);
    const decided = await decideApproval(`${desk.href}/${caseId}`, key('ada'), { decision: 'approve' });
    expect(decided.status).toBe(200);
    const { taskId } = await beginning;
    self.release();
    await vi.waitFor(async () => expect(await statusOf(taskId, 'keeper')).toBe('completed'), WAIT);
    expect(self.recorded).toMatchObject([
      {
        tool: 'guarded',
        success: true,
        agent_name: 'keeper',
        approver: expect.stringMatching(/^key:/) as string,
      },
    ]);
  });
});

describe('callbacks before a call', () => {
  it('hear of a call that goes on as a task once, when it runs', async () => {
    self.hold();
    const { taskId } = await begin('waits');
    await vi.waitFor(() => expect(self.heard).toContain('before waits'), WAIT);
    self.release();
    await vi.waitFor(async () => expect(await statusOf(taskId)).toBe('completed'), WAIT);
    expect(self.heard).toEqual(['before waits', 'after waits']);
  });
});

describe('the progress of a tool', () => {
  it('fails no call, whatever the listeners do', async () => {
    const { isError, text } = await callTool(service, 'reports', { progress: 0.5 }, key('reader'));
    expect([isError, JSON.parse(text)]).toEqual([false, { told: true }]);
  });

  it('is an error of the tool when it is no number', async () => {
    for (const progress of ['half', null, undefined])
      expect(await callTool(service, 'reports', { progress }, key('reader'))).toMatchObject({
        isError: true,
        code: 'internal_error',
      });
  });
});

describe('what would be permitted', () => {
  it('is judged by class-level permissions for the operation that is asked about, and only then', async () => {
    await callTool(service, 'reports', { progress: 1 }, key('ada'));
    const { agent, introspection } = self;
    const asked = (op?: 'find' | 'update' | 'delete') =>
      introspection.wouldPermit(agent!, 'update_object', { class_name: 'Locked', ...(op && { op }) });
    expect(await asked('update')).toEqual({
      allowed: false,
      reason: 'clp_denied',
      denied_at: 'assert_class_accessible!',
    });
    for (const op of ['find', 'delete', undefined] as const)
      expect(await asked(op)).toEqual({ allowed: true });
  });
});

describe('the ceiling of client mode', () => {
  it('names the tools that the agent may use instead, and none that a filter or gate would refuse', async () => {
    const headers = { ...key('client'), 'X-Parse-Session-Token': `r:${SECRET}` };
    const { code, text } = await callTool(service, 'aggregate', { class_name: 'Post' }, headers);
    expect(code).toBe('access_denied');
    expect(text).toContain("Tool 'aggregate' is not available to client-mode agents");
    expect(text).toContain('client_safe: true');
    expect(text).not.toContain('Post');
    expect(/Available: ([^.]+)\./.exec(text)?.[1]?.split(', ')).toEqual([
      'list_tools',
      'query_class',
      'count_objects',
      'get_objects',
      'get_sample_objects',
      'semantic_search',
    ]);
  });
});
