import 'reflect-metadata';
import { Inject, Injectable, Module } from '@nestjs/common';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { MongoClient } from 'mongodb';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  AGENT_FACTORY,
  type Agent,
  type AgentChooser,
  AgentMethod,
  type MethodCall,
  ParseClass,
  Parley,
  ParleyModule,
  Tool,
  type ToolCall,
  aclReadMatchStage,
  aclWriteMatchStage,
  PrincipalResolver,
} from '@parley/server';
import { TENANT_NOTES_SEED } from '../../fixtures/tenant-notes.fixture.js';
import { ParseUnderTest } from '../../support/parse-under-test.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

/**
 * What the Ruby agent's guide shows of client mode, of agents of a user or a role, of methods and of subscriptions, as a
 * TypeScript developer writes it in an application: each has the name of its section there.
 */
@Injectable()
class Helpers {
  constructor(@Inject(PrincipalResolver) private readonly principals: PrincipalResolver) {}

  @Tool({ name: 'my_read_helper', description: 'Reads what the session may read.', clientSafe: true })
  async read(_: object, call: ToolCall) {
    return { notes: await call.records.count('Note') };
  }

  @Tool({ name: 'master_helper', description: 'Needs more than a session.' })
  master() {
    return { never: true };
  }

  @Tool({ name: 'slow_helper', description: 'Takes too long.', timeout: 1 })
  async sleep(_: object, { signal }: ToolCall) {
    await pause(60_000, undefined, { signal });
    return {};
  }

  @Tool({
    name: 'my_rights',
    description: 'Stages for queries of its own, and which turn and session it is of.',
  })
  async rights(_: object, call: ToolCall) {
    const rights = await this.principals.resolveAgent(call.agent);
    return {
      read: aclReadMatchStage(rights),
      write: aclWriteMatchStage(rights),
      session: call.sessionId,
      turn: call.agent.correlationId,
    };
  }
}

@ParseClass('Note')
class NoteMethods {
  @AgentMethod({ description: 'Archives a note.', permission: 'write', supportsDryRun: true })
  archive(_: object, call: MethodCall) {
    return call.dryRun ? { would_archive: call.objectId } : { archived: call.objectId };
  }

  @AgentMethod({ description: 'Deactivates a note.', permission: 'write' })
  deactivate(_: object, call: MethodCall) {
    return { deactivated: call.objectId };
  }
}

@Module({ providers: [Helpers, NoteMethods] })
class HelpersModule {}

/** The application of a recipe, with the helpers among its tools. */
async function startApplication(options: Parameters<typeof ParleyModule.forRoot>[0]) {
  const module = await Test.createTestingModule({
    imports: [HelpersModule, ParleyModule.forRoot(options)],
  }).compile();
  const app = module.createNestApplication<NestExpressApplication>(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  return { app, parley: app.get(Parley), url: `${await app.getUrl()}/mcp` };
}
type Application = Awaited<ReturnType<typeof startApplication>>;

const GATES = { PARSE_AGENT_ALLOW_WRITE_TOOLS: true, PARSE_AGENT_ALLOW_RAW_CRUD: true };

describe('Client Mode', () => {
  const session = { session: 'r:session-of-ada' };
  let parse: ParseUnderTest;
  let application: Application;
  let reader: Agent;
  beforeAll(async () => {
    parse = await ParseUnderTest.start();
    await parse.fill(TENANT_NOTES_SEED);
    application = await startApplication({
      database: { uri: parse.databaseUri, name: parse.databaseName },
      parse: { ...parse.cautiousConfig, masterKey: null },
      policy: { unlistedClasses: 'allow', classes: { Vault: { hidden: true } } },
      agents: { desk: { permissions: 'write' } },
      auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
      gates: GATES,
      server: { preAuthRateLimit: { limit: 3, window: 60 } },
    });
    reader = application.parley.agentFor({
      agent: { permissions: 'write' },
      principal: 'ada',
      identity: session,
    });
  });
  afterAll(async () => {
    await application?.app.close();
    await parse?.stop();
  });

  const run = async (tool: string, args: Record<string, unknown>, as = reader) => {
    const outcome = await application.parley.runner.run(tool, args, as);
    return outcome.ok ? 'done' : `${outcome.refusal.code} ${outcome.refusal.gate}`;
  };
  const note = { class_name: 'Note' };

  it('is the mode of every agent that code makes where there is no master key', async () => {
    const { agentFor } = { agentFor: (choice: object) => application.parley.agentFor(choice as never) };
    for (const identity of [{ user: 'ada' }, { role: 'editors' }, undefined])
      expect(() => agentFor({ agent: {}, principal: 'ada', ...(identity && { identity }) })).toThrow(
        "write identity: { session: 'TOKEN' }",
      );
    expect(() => agentFor({ agent: { clientMode: false }, principal: 'ada', identity: session })).toThrow(
      'cannot be false without parse.masterKey',
    );
    expect(() => agentFor({ agent: 'desk', principal: 'ada', identity: { user: 'ada' } })).toThrow('session');
  });

  it('reads with six tools and those declared safe, and lists no other', async () => {
    const safe = [
      'list_tools',
      'query_class',
      'count_objects',
      'get_object',
      'get_objects',
      'get_sample_objects',
    ];
    expect(await application.parley.introspection.describe({ agent: reader })).toMatchObject({
      tools: { effective: [...safe, 'my_read_helper'] },
    });
    expect(await run('query_class', note)).toBe('done');
    expect(await run('my_read_helper', {})).toBe('done');
    for (const tool of [
      'aggregate',
      'get_schema',
      'explain_query',
      'export_data',
      'call_method',
      'master_helper',
    ])
      expect([tool, await run(tool, {})]).toEqual([tool, 'access_denied mode_ceiling']);
  });

  it('names the first of its four refusals: tool filter, mutations, ceiling, class', async () => {
    const filtered = application.parley.agentFor({
      agent: { permissions: 'write', tools: { except: ['create_object', 'aggregate'] } },
      principal: 'ada',
      identity: session,
    });
    expect(await run('create_object', note, filtered)).toBe('tool_filtered tool_filter');
    expect(await run('aggregate', note, filtered)).toBe('tool_filtered tool_filter');
    expect(await run('create_object', note)).toBe('access_denied mutations');
    expect(await run('aggregate', { class_name: 'Vault', pipeline: [] })).toBe('access_denied mode_ceiling');
    expect(await run('query_class', { class_name: 'Vault' })).toBe('access_denied class');
  });

  it('writes with allowMutations alone, which sub-agents narrow and never widen', async () => {
    const { subAgents } = application.parley;
    const writer = application.parley.agentFor({
      agent: { permissions: 'write', allowMutations: true },
      principal: 'ada',
      identity: session,
    });
    expect(await run('create_object', { ...note, fields: { title: 'of ada' } }, writer)).toBe('done');
    const child = await subAgents.delegate(writer, { permissions: 'write', allowMutations: false });
    expect(child.agent.definition).toMatchObject({ clientMode: true, allowMutations: false });
    expect(await run('create_object', { ...note, fields: { title: 'x' } }, child.agent)).toBe(
      'access_denied mutations',
    );
    await expect(subAgents.delegate(reader, { allowMutations: true })).rejects.toThrow('allowMutations');
    await expect(subAgents.delegate(reader, { identity: { user: 'ada' } })).rejects.toThrow(
      'needs a session',
    );
  });

  it('pre_auth_rate_limiter: counts guesses before anybody is known', async () => {
    const statuses: number[] = [];
    for (let guess = 0; guess < 4; guess += 1)
      statuses.push((await rpc(application, 'ping', {}, { 'X-MCP-API-Key': 'guess' })).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
  });
});

describe('Agent-level ACL scope: acl_user, acl_role', () => {
  let database: Awaited<ReturnType<typeof startDatabase>>;
  let application: Application;
  let mongo: MongoClient;
  const choose: AgentChooser = ({ headers }) => ({
    agent: String(headers['x-agent']),
    principal: String(headers['x-agent']),
    correlationId: 'turn-1',
  });
  beforeAll(async () => {
    database = await startDatabase({ ...TENANT_NOTES_SEED, roles: [{ name: 'editors', users: ['ada'] }] });
    mongo = new MongoClient(database.uriOf('parley'));
    application = await startApplication({
      database: { uri: database.uri },
      subscriptions: { debounce: 0 },
      policy: {
        classes: {
          Note: { fields: ['title', 'rank', 'archived'], canonicalFilter: { archived: { $ne: true } } },
        },
      },
      agents: {
        asAda: { permissions: 'write', identity: { user: 'ada' } },
        asEditors: { permissions: 'write', identity: { role: 'editors' } },
        master: { permissions: 'write' },
      },
      gates: { PARSE_AGENT_ALLOW_WRITE_TOOLS: true },
      providers: [{ provide: AGENT_FACTORY, useValue: choose }],
    });
  });
  afterAll(async () => {
    await application?.app.close();
    await mongo?.close();
    await database?.stop();
  });
  const call = (agent: string, tool: string, args: object = {}, headers = {}) =>
    callTool(application, tool, args, { 'x-agent': agent, ...headers });

  it.each([
    ['asAda', ['*', 'ada', 'role:editors']],
    ['asEditors', ['*', 'role:editors']],
  ])('acl_read_match_stage, acl_write_match_stage: are those of %s', async (agent, principals) => {
    const { text } = await call(agent, 'my_rights');
    const stage = (column: string) => ({
      $match: { $or: [{ [column]: { $in: principals } }, { [column]: { $exists: false } }] },
    });
    expect(JSON.parse(text)).toMatchObject({ read: stage('_rperm'), write: stage('_wperm') });
    expect(JSON.parse((await call('master', 'my_rights')).text)).toMatchObject({ read: null, write: null });
  });

  it('agent_method Dry-Run Previews: shows what a method shows, and else what would be called', async () => {
    const method = { class_name: 'Note', object_id: 'open', arguments: { dry_run: true } };
    for (const agent of ['asAda', 'master']) {
      expect((await call(agent, 'call_method', { ...method, method_name: 'archive' })).data).toMatchObject({
        result: { would_archive: 'open' },
      });
      expect((await call(agent, 'call_method', { ...method, method_name: 'deactivate' })).data).toMatchObject(
        {
          dry_run: true,
          supports_real_dry_run: false,
          would_call: { class: 'Note', method: 'deactivate', object_id: 'open', args: {} },
        },
      );
      const meant = { ...method, method_name: 'deactivate', arguments: { dry_run: false } };
      expect((await call(agent, 'call_method', meant)).data).toMatchObject({
        result: { deactivated: 'open' },
      });
      expect((await call(agent, 'create_object', { class_name: 'Note', fields: {} })).text).toContain(
        'Required: PARSE_AGENT_ALLOW_RAW_CRUD=true',
      );
    }
    // The class admits writes of signed-in users, and a role is nobody who signed in.
    expect((await call('asEditors', 'call_method', { ...method, method_name: 'archive' })).code).toBe(
      'access_denied',
    );
  });

  it('agent_canonical_filter: holds for lists and counts until a caller declines, and for no id', async () => {
    const count = async (more: object) =>
      (await call('master', 'count_objects', { class_name: 'Note', ...more })).data;
    const all = (await count({ apply_canonical_filter: false }))['count'] as number;
    expect(await count({})).toMatchObject({ count: all - 1 });
    expect((await call('master', 'get_object', { class_name: 'Note', object_id: 'old' })).isError).toBe(
      false,
    );
    expect((await call('master', 'get_schema', { class_name: 'Note' })).data).toMatchObject({
      canonical_filter: { archived: { $ne: true } },
    });
    const grouped = { class_name: 'Note', field: 'title', apply_canonical_filter: false };
    expect((await call('master', 'group_by', grouped)).code).toBe('invalid_argument');
  });

  it('Pagination next_call Hint: repeats the call, and is absent from the last page', async () => {
    const args = {
      class_name: 'Note',
      where: { rank: { $gte: 0 } },
      keys: ['title'],
      order: '-rank',
      limit: 4,
    };
    const first = await call('master', 'query_class', args);
    expect(first.data['next_call']).toEqual({ tool: 'query_class', arguments: { ...args, skip: 4 } });
    expect((await call('master', 'query_class', { ...args, skip: 4 })).data).not.toHaveProperty('next_call');
  });

  it('Timeouts: say that less can be asked for', async () => {
    const { code, text } = await call('master', 'slow_helper');
    expect([code, text]).toEqual([
      'timeout',
      "Tool 'slow_helper' timed out after 1s. Ask it for less by its arguments",
    ]);
  });

  it.each(['asAda', 'asEditors', 'master'])(
    'MCPSubscriptions: tell %s of rows that it may read, in the session of the call',
    async (agent) => {
      const who = { 'x-agent': agent };
      const opened = await rpc(
        application,
        'initialize',
        { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'desk', version: '1' } },
        who,
      );
      const session = opened.headers.get('mcp-session-id') ?? '';
      const headers = { ...who, 'Mcp-Session-Id': session };
      const { text } = await call(agent, 'my_rights', {}, headers);
      expect(JSON.parse(text)).toMatchObject({ session, turn: 'turn-1' });

      const uri = 'parse://Note/count';
      expect((await rpc(application, 'resources/subscribe', { uri }, headers)).body['result']).toEqual({});
      const stream = await fetch(application.url, { headers: { Accept: 'text/event-stream', ...headers } });
      const reader = stream.body!.getReader();
      const notes = mongo.db().collection<{ _id: string }>('Note');
      const insert = (name: string, readers: string[]) =>
        notes.insertOne({ _id: `${agent}-${name}`, _rperm: readers, _wperm: [] } as never);
      let received = '';
      const listen = async (wanted: string) => {
        while (!received.includes(wanted)) received += new TextDecoder().decode((await reader.read()).value);
      };
      // A row that nobody may read is told to the master key alone; what is told later shows that it was not told first.
      await insert('withheld', []);
      if (agent === 'master') await listen(uri);
      await vi.waitFor(async () =>
        expect(await application.parley.notify(session, 'notifications/mark')).toBe(true),
      );
      await listen('notifications/mark');
      expect(received.includes(uri)).toBe(agent === 'master');
      received = '';
      await insert('told', ['ada', 'role:editors']);
      await listen(uri);
      await reader.cancel();
    },
  );
});
