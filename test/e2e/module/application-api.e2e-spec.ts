import 'reflect-metadata';
import { Inject, Injectable, Module } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  McpRequest,
  AGENT_FACTORY,
  type AgentChooser,
  AgentIntrospection,
  ConfigError,
  defineTool,
  Impersonation,
  MetadataAudit,
  ModelSettingsError,
  OperationLog,
  Parley,
  ParleyModule,
  type ParleyModuleOptions,
  PrincipalResolver,
  Tool,
  type ToolCall,
  ToolCallbacks,
  ToolRegistry,
  ToolRunner,
} from '@parley/server';
import { openAi, startModelServer } from '../../../libs/chat/src/contracts/model-server.js';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

@Injectable()
class OperatorView {
  constructor(
    @Inject(AgentIntrospection) readonly introspection: AgentIntrospection,
    @Inject(MetadataAudit) readonly metadata: MetadataAudit,
    @Inject(OperationLog) readonly log: OperationLog,
    @Inject(Impersonation) readonly impersonation: Impersonation,
    @Inject(PrincipalResolver) readonly principals: PrincipalResolver,
    @Inject(ToolCallbacks) readonly callbacks: ToolCallbacks,
    @Inject(ToolRunner) readonly runner: ToolRunner,
    @Inject(ToolRegistry) readonly registry: ToolRegistry,
  ) {}
}

@Injectable()
class Listener {
  readonly received: (readonly [string, Record<string, unknown>])[] = [];

  @OnEvent('parse.agent.*')
  agentEvent(record: Record<string, unknown>) {
    this.received.push(['agent', record]);
  }

  @OnEvent('parley.audit')
  recorded(record: Record<string, unknown>) {
    this.received.push(['audit', record]);
    throw new Error('a listener of the application fails');
  }
}

@Injectable()
class SessionTools {
  @Tool({ name: 'my_session', description: 'The session of the call.' })
  session(_: object, call: ToolCall) {
    return { session: call.correlationId ?? null };
  }

  @Tool({
    name: 'fails',
    description: 'Returns a failure.',
    input: { type: 'object', properties: { code: {} } },
  })
  fails({ code }: { code?: unknown }) {
    return { success: false, error: 'the invoice is closed', error_code: code, detail: 'internal' };
  }
}

@Module({ providers: [OperatorView, Listener], exports: [OperatorView, Listener] })
class OperatorModule {}

const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri },
  policy: {
    unlistedClasses: 'allow',
    classes: {
      ...POSTS_POLICY.classes,
      Author: {
        ...POSTS_POLICY.classes.Author,
        tenantScope: {
          field: 'orgId',
          from: { claim: ['account', 'org'] },
          bypass: ({ principal }) => principal === 'support',
        },
      },
    },
  },
  agents: {
    desk: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 },
    drafts: {
      permissions: 'readonly',
      tenantId: 'acme',
      filters: { Post: ({ principal }) => ({ status: principal === 'editor' ? 'draft' : 'live' }) },
    },
    master: { permissions: 'admin' },
  },
  server: { drainTimeout: 1 },
  environment: { PARSE_MCP_ENABLED: 'true' },
};
const chooser: AgentChooser = ({ headers }) => ({
  agent: headers['x-agent'] === 'drafts' ? 'drafts' : 'desk',
  principal: String(headers['x-principal'] ?? 'reader'),
  ...(headers['x-conversation'] !== undefined && { correlationId: String(headers['x-conversation']) }),
});

let app: NestExpressApplication;
let url: string;
let parley: Parley;
let operator: OperatorView;
let listener: Listener;

beforeAll(async () => {
  const module = await Test.createTestingModule({
    imports: [
      EventEmitterModule.forRoot({ wildcard: true }),
      OperatorModule,
      ParleyModule.forRoot({ ...OPTIONS, providers: [{ provide: AGENT_FACTORY, useValue: chooser }] }),
    ],
    providers: [SessionTools],
  }).compile();
  app = module.createNestApplication<NestExpressApplication>(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  url = `${await app.getUrl()}/mcp`;
  parley = app.get(Parley);
  operator = app.get(OperatorView);
  listener = app.get(Listener);
});
afterAll(() => app?.close());

const service = () => ({ url });
/** What a tool without an output schema returned, which clients receive as text. */
const returned = async (name: string, args: object = {}, headers: Record<string, string> = {}) =>
  JSON.parse((await callTool(service(), name, args, headers)).text) as unknown;
const desk = () => parley.agentFor({ agent: 'desk', principal: 'nightly' });
const POSTS = { class_name: 'Post', order: 'title' };

describe('what an application injects', () => {
  it('describes an agent and a class as calls are decided, and answers whether a call would pass', async () => {
    const agent = desk();
    expect(await operator.introspection.describe({ agent })).toMatchObject({
      permissions: 'readonly',
      tenant_id: 'acme',
      hidden_classes: expect.arrayContaining(['Contract']),
    });
    expect(await operator.introspection.describeFor(agent, 'Contract')).toMatchObject({
      accessible: 'hidden',
    });
    expect(await operator.introspection.wouldPermit(agent, 'create_object')).toMatchObject({
      allowed: false,
    });
    expect(await operator.introspection.wouldPermit(agent, 'query_class', { class_name: 'Post' })).toEqual({
      allowed: true,
    });
  });

  it('lists the tools of an agent as functions for a model, by category', async () => {
    const agent = desk();
    const { tools } = await operator.introspection.describe({ agent });
    const functions = await operator.introspection.listFunctions(agent);
    expect(functions.map(({ function: { name } }) => name)).toEqual(tools.effective);
    expect(functions[0]).toEqual({
      type: 'function',
      function: {
        name: 'list_tools',
        description: expect.any(String),
        parameters: expect.objectContaining({ type: 'object' }),
      },
    });
    const schema = await operator.introspection.listFunctions(agent, { category: 'schema' });
    expect(schema.map(({ function: { name } }) => name)).toEqual(['get_all_schemas', 'get_schema']);
  });

  it('tells which gates of the environment are open, and opens none', () => {
    const gates = operator.introspection.gates as unknown as Record<string, boolean>;
    expect(Object.values(gates)).toEqual([false, false, false, false]);
    gates['PARSE_AGENT_ALLOW_WRITE_TOOLS'] = true;
    expect(operator.introspection.gates.PARSE_AGENT_ALLOW_WRITE_TOOLS).toBe(false);
  });

  it('gives the filter of a class with its values, functions asked for the agent', async () => {
    const editor = parley.agentFor({ agent: 'drafts', principal: 'editor' });
    expect(await operator.introspection.filterFor(editor, 'Post')).toEqual({ status: 'draft' });
    expect(await operator.introspection.filterFor(desk(), 'Post')).toBeNull();
    await expect(operator.introspection.filterFor(desk(), 'no class')).rejects.toThrow(TypeError);
  });

  it('compares policy and schema', async () => {
    expect(await operator.metadata.run()).toMatchObject({
      missing_class_descriptions: expect.arrayContaining(['Author']),
      canonical_filter_summary: { Post: { archived: { $ne: true } } },
    });
  });

  it('keeps the latest calls in the operation log', async () => {
    await callTool(service(), 'count_objects', { class_name: 'Post' });
    expect(operator.log.all().at(-1)).toMatchObject({ tool: 'count_objects', success: true });
  });

  it('calls back before and after tools, and for errors', async () => {
    const seen: string[] = [];
    operator.callbacks
      .beforeToolCall(({ tool }) => seen.push(`before ${tool}`))
      .afterToolCall(({ tool }) => seen.push(`after ${tool}`))
      .onError((_, { tool }) => seen.push(`error ${tool}`));
    await callTool(service(), 'my_session', {});
    await callTool(service(), 'query_class', { class_name: 'Contract' });
    await vi.waitFor(() =>
      expect(seen).toEqual([
        'before my_session',
        'after my_session',
        'before query_class',
        'error query_class',
      ]),
    );
  });

  it('acts as a user from code, with the rights of a session of that user', async () => {
    const master = parley.agentFor({ agent: 'master', principal: 'support' });
    const ada = await operator.impersonation.impersonate(master, 'u1');
    await operator.principals.refreshScope(ada);
    const outcome = await operator.runner.run('count_objects', { class_name: '_User' }, new McpRequest(ada));
    expect(outcome).toMatchObject({ ok: true });
    expect(operator.log.all().at(-1)).toMatchObject({ auth_type: 'session_token' });
  });
});

describe('events of an instance', () => {
  it('reach @OnEvent of the application, and a listener that fails fails no call', async () => {
    listener.received.length = 0;
    const { isError } = await callTool(service(), 'count_objects', { class_name: 'Post' });
    expect(isError).toBe(false);
    expect(listener.received).toEqual([
      ['audit', expect.objectContaining({ tool: 'count_objects' })],
      ['agent', expect.objectContaining({ tool: 'count_objects', success: true })],
    ]);
  });
});

describe('filters that are functions', () => {
  it.each([
    ['editor', 'draft'],
    ['reader', 'live'],
  ])('given in forRoot limit what %s reads over HTTP', async (principal, status) => {
    const headers = { 'X-Agent': 'drafts', 'X-Principal': principal };
    const { data } = await callTool(service(), 'query_class', POSTS, headers);
    const { results } = data as { results: { status: string }[] };
    expect(results.length).toBeGreaterThan(0);
    expect(new Set(results.map((row) => row.status))).toEqual(new Set([status]));
  });
});

describe('a tenant that the application reads from claims', () => {
  const titles = async (claims: object) => {
    const agent = parley.agentFor({ agent: 'desk', principal: 'x', claims: { ...claims } });
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
    const params = { name: 'query_class', arguments: { class_name: 'Author', order: 'name' } };
    const { body } = await parley.handle({ ...message, params }, agent);
    return body?.['result'] as { isError: boolean; structuredContent?: { results: { name: string }[] } };
  };

  it('binds every read of the class to it, and refuses the class without it', async () => {
    const acme = await titles({ account: { org: 'acme' } });
    const globex = await titles({ account: { org: 'globex' } });
    const names = (answer: typeof acme) => answer.structuredContent?.results.map(({ name }) => name) ?? [];
    expect(names(acme).length).toBeGreaterThan(0);
    expect(names(globex).length).toBeGreaterThan(0);
    expect(names(globex).filter((name) => names(acme).includes(name))).toEqual([]);
    expect((await titles({})).isError).toBe(true);
  });
});

describe('the correlation id of a call', () => {
  it('is the one that the application chose, before the header', async () => {
    const both = { 'Mcp-Session-Id': 'of-the-header', 'X-Conversation': 'of-the-application' };
    expect(await returned('my_session', {}, both)).toEqual({ session: 'of-the-application' });
    expect(listener.received.at(-1)?.[1]).toMatchObject({ correlation_id: 'of-the-application' });
    const header = { 'Mcp-Session-Id': 'of-the-header' };
    expect(await returned('my_session', {}, header)).toEqual({ session: 'of-the-header' });
  });

  it('cannot be a text that would break a log line', () => {
    const choice = { agent: 'desk', principal: 'x', correlationId: 'a\nb' };
    expect(() => parley.agentFor(choice)).toThrow(/correlationId/);
  });
});

describe('a message without HTTP', () => {
  it('is answered with its envelope, under every gate', async () => {
    const call = (name: string, args: object) => ({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name, arguments: args },
    });
    const counted = await parley.handle(call('count_objects', { class_name: 'Post' }), desk());
    expect(counted).toMatchObject({
      status: 200,
      body: { jsonrpc: '2.0', id: 7, result: { isError: false } },
    });
    const refused = await parley.handle(call('query_class', { class_name: 'Contract' }), desk());
    expect(refused).toMatchObject({ status: 200, body: { result: { isError: true } } });
    expect(await parley.handle({ jsonrpc: '2.0', id: 'a', method: 'tools/list' }, desk())).toMatchObject({
      body: { id: 'a', result: { tools: expect.any(Array) } },
    });
  });

  it.each<[string, unknown, number, unknown]>([
    ['a notification', { jsonrpc: '2.0', method: 'notifications/initialized' }, 202, null],
    ['no object', 'tools/list', 400, { error: { code: -32_600 }, id: null }],
    ['nothing', undefined, 400, { error: { code: -32_600 }, id: null }],
    ['a batch', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], 400, { error: { code: -32_600 } }],
    ['another version of JSON-RPC', { id: 1, method: 'ping' }, 400, { error: { code: -32_600 }, id: 1 }],
    [
      'an id that is none',
      { jsonrpc: '2.0', id: {}, method: 'ping' },
      400,
      { error: { code: -32_600 }, id: null },
    ],
    ['an unknown method', { jsonrpc: '2.0', id: 1, method: 'nope' }, 200, { error: { code: -32_601 } }],
    [
      'params of a wrong kind',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: 5 },
      200,
      { error: { code: -32_602 } },
    ],
  ])('answers %s as the protocol says', async (_, body, status, expected) => {
    const answered = await parley.handle(body, desk());
    expect(answered.status).toBe(status);
    if (expected === null) expect(answered.body).toBeNull();
    else expect(answered.body).toMatchObject(expected as object);
  });
});

describe('a notification from the application', () => {
  it('reaches the listening stream of the session, and reports when nobody listens', async () => {
    const opened = await rpc(service(), 'initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    const session = opened.headers.get('mcp-session-id') ?? '';
    expect(session).not.toBe('');
    expect(await parley.notify(session, 'notifications/rates')).toBe(false);
    const stream = await fetch(url, {
      headers: { Accept: 'text/event-stream', 'Mcp-Session-Id': session },
    });
    const reader = stream.body!.getReader();
    await vi.waitFor(async () =>
      expect(await parley.notify(session, 'notifications/rates', { usd: 2 })).toBe(true),
    );
    let text = '';
    while (!text.includes('notifications/rates'))
      text += new TextDecoder().decode((await reader.read()).value);
    expect(text).toContain('"params":{"usd":2}');
    expect(text).not.toContain('"id":');
    await reader.cancel();
    await expect(parley.notify(session, '')).rejects.toThrow(TypeError);
    await expect(parley.notify('', 'notifications/rates')).rejects.toThrow(TypeError);
  });
});

describe('tools while the application runs', () => {
  it('are replaced under their name, built-ins with override', async () => {
    const answering = (name: string, text: string, override = false) => ({
      ...defineTool({ name, description: 'Answers.', override }),
      handler: () => ({ text }),
    });
    operator.registry.register(answering('greets', 'one'));
    const remove = operator.registry.register(answering('greets', 'two'));
    expect(await returned('greets')).toEqual({ text: 'two' });
    remove();
    const restore = operator.registry.register(answering('list_tools', 'mine', true));
    expect(await returned('list_tools')).toEqual({ text: 'mine' });
    restore();
    expect(await returned('list_tools')).not.toEqual({ text: 'mine' });
  });

  it('whose result is too large are refused with a code, and advise only arguments that they have', async () => {
    const remove = operator.registry.register({
      ...defineTool({ name: 'grows', description: 'Answers with too much.' }),
      handler: () => ({ results: Array.from({ length: 6 }, () => ({ text: 'x'.repeat(1_000_000) })) }),
    });
    const { isError, code, text } = await callTool(service(), 'grows', {});
    expect([isError, code]).toEqual([true, 'invalid_argument']);
    expect(text).toContain('exceeded 4194304 bytes');
    for (const argument of ['limit:', 'keys:', 'where:']) expect(text).not.toContain(argument);
    remove();
  });

  it.each([
    ['invalid_argument', 'invalid_argument'],
    ['no_such_code', 'no_such_code'],
    ['no such code', 'internal_error'],
    [undefined, 'internal_error'],
  ])('that return a failure with code %s are answered as failed with %s', async (code, told) => {
    const args = code === undefined ? {} : { code };
    const answer = await callTool(service(), 'fails', args);
    expect(answer).toMatchObject({ isError: true, text: expect.stringContaining('the invoice is closed') });
    expect(JSON.stringify(answer)).toContain(told);
    expect(JSON.stringify(answer)).not.toContain('internal"');
  });
});

describe('a conversation from code', () => {
  it('answers with the tools of the agent, goes on, and is exported with what it cost', async () => {
    const model = await startModelServer();
    try {
      const settings = { provider: 'lmstudio', endpoint: `${model.url}/v1` };
      const talk = parley.converse(desk(), { model: settings });
      model.script(
        openAi.calls([{ name: 'count_objects', args: { class_name: 'Post' } }]),
        openAi.calls([{ name: 'query_class', args: { class_name: 'Contract' } }]),
        openAi.says('There are some.'),
      );
      const answer = await talk.ask('How many posts are there?');
      expect(answer.text).toBe('There are some.');
      expect(answer.toolCalls.map(({ name }) => name)).toEqual(['count_objects', 'query_class']);
      expect(operator.log.all().at(-1)).toMatchObject({ tool: 'query_class', error_code: 'access_denied' });
      expect(answer.usage.total).toBeGreaterThan(0);
      model.script(openAi.says('Three.'));
      expect((await answer.reply('And drafts?')).text).toBe('Three.');
      expect(model.requests.at(-1)?.body.messages).toHaveLength(4);
      const later = parley.converse(desk(), { model: settings });
      expect(later.import(talk.export())).toBe(true);
      expect(later.history).toEqual(talk.history);
    } finally {
      await model.stop();
    }
  });

  it('is not opened with settings that no model can be asked with', () => {
    expect(() => parley.converse(desk(), { model: { provider: 'openai' } })).toThrow(ModelSettingsError);
  });
});

describe('a port of its own', () => {
  it('serves the instance at its root, with health and tools, until it is closed', async () => {
    const { url: at, close } = await parley.listen({ standalone: true, port: 0 });
    const root = at.replace(/\/mcp$/, '');
    expect((await callTool({ url: at }, 'count_objects', { class_name: 'Post' })).isError).toBe(false);
    expect((await fetch(`${root}/health`)).status).toBe(200);
    expect((await fetch(`${root}/tools`)).status).toBe(200);
    expect((await fetch(`${root}/elsewhere`)).status).toBe(404);
    await close();
    await expect(fetch(`${root}/health`)).rejects.toThrow('fetch failed');
  });

  it('is not opened without the flag in code, nor at an address that needs credentials', async () => {
    const loose = { port: 0 } as never;
    await expect(parley.listen(loose)).rejects.toThrow(ConfigError);
    await expect(parley.listen({ standalone: true, port: 0, host: '0.0.0.0' })).rejects.toThrow(ConfigError);
    const { port } = new URL(url);
    await expect(parley.listen({ standalone: true, port: Number(port) })).rejects.toThrow(/EADDRINUSE/);
  });
});
