import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Test, type TestingModule } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Agent, Parley, ParleyModule, Tool, type ToolCall } from '@parley/server';
import { type ModelServer, openAi, startModelServer } from '../../../libs/chat/src/contracts/model-server.js';
import { POSTS_POLICY, POSTS_SEED, SECRET } from '../../fixtures/posts.fixture.js';
import { startDatabase } from '../../support/service.js';

/**
 * What the class reference of the Ruby agent, and the last sections of its guide, show as code, as a TypeScript developer writes
 * it: each has the name of its method or section there.
 */
const posts = await startDatabase(POSTS_SEED);
afterAll(() => posts.stop());

interface MeteredCall {
  readonly tool: string;
  readonly correlation_id: string;
  readonly result_size?: number;
  readonly est_input_tokens?: number;
  readonly est_cost_usd?: number;
}

/** Cost telemetry: what each turn cost. */
@Injectable()
class Dashboard {
  readonly calls: MeteredCall[] = [];

  @OnEvent('parse.agent.tool_call')
  add(call: MeteredCall) {
    this.calls.push(call);
  }
}

@Injectable()
class Cooperating {
  @Tool({ name: 'fetch_slowly', description: 'Looks whether it was cancelled, as it goes.' })
  async fetch(_: object, call: ToolCall) {
    const cancelled = { success: false, error: 'Cancelled by client', cancelled: true };
    if (call.signal.aborted) return cancelled;
    const posts = await call.records.count('Post');
    call.progress({ progress: 1, total: 2, message: 'counted' });
    return call.signal.aborted ? cancelled : { success: true, data: { posts } };
  }
}

@Module({ providers: [Dashboard, Cooperating], exports: [Dashboard] })
class DashboardModule {}

let app: TestingModule;
let parley: Parley;
let model: ModelServer;
beforeAll(async () => {
  model = await startModelServer();
  app = await Test.createTestingModule({
    imports: [
      EventEmitterModule.forRoot({ wildcard: true }),
      DashboardModule,
      ParleyModule.forRoot({
        database: { uri: posts.uri },
        policy: {
          ...POSTS_POLICY,
          tokenCostPerMillionInput: 3,
          classes: {
            ...POSTS_POLICY.classes,
            Post: {
              ...POSTS_POLICY.classes.Post,
              tenantScope: { field: 'orgId', bypass: ({ permissions }) => permissions === 'admin' },
            },
          },
        },
        agents: { reader: { permissions: 'readonly', rateLimit: 100_000 } },
        environment: { LLM_PROVIDER: 'lmstudio', LLM_BASE_URL: `${model.url}/v1`, LLM_MODEL: 'small' },
      }),
    ],
  }).compile();
  await app.init();
  parley = app.get(Parley);
});
afterAll(async () => {
  await app.close();
  await model.stop();
});

const makeAgent = (tenantId?: string, correlationId?: string): Agent =>
  parley.agentFor({
    agent: 'reader',
    principal: 'nightly',
    ...(tenantId !== undefined && { tenantId }),
    ...(correlationId !== undefined && { correlationId }),
  });
const COUNT = [{ name: 'count_objects', args: { class_name: 'Post' } }];

describe('Parse::Agent', () => {
  it('ask, ask_followup, clear_conversation!: go on until they begin again, with the model of the environment', async () => {
    const talk = parley.converse(makeAgent('acme'));
    model.script(openAi.calls(COUNT), openAi.says('60 posts.'), openAi.says('None.'), openAi.says('Other.'));
    expect((await talk.ask('How many posts are there?')).text).toBe('60 posts.');
    expect((await talk.reply('What about drafts?')).text).toBe('None.');
    expect(talk.history).toHaveLength(4);
    talk.reset();
    expect(talk.history).toEqual([]);
    expect((await talk.ask('Different topic...')).text).toBe('Other.');
    expect(new Set(model.requests.map(({ body }) => body.model))).toEqual(new Set(['small']));
  });

  it('ask_streaming: hands over the text as it arrives', async () => {
    const chunks: string[] = [];
    model.script(openAi.says('Growth was steady.'));
    const answer = await parley
      .converse(makeAgent('acme'))
      .ask('Analyze user growth', { onText: (chunk) => chunks.push(chunk) });
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.join('')).toBe(answer.text);
  });

  it('on_tool_call, on_tool_result, on_error: see each call of a conversation, and its outcome', async () => {
    const seen: string[] = [];
    model.script(
      openAi.calls(COUNT),
      openAi.calls([{ name: 'query_class', args: { class_name: 'Contract' } }]),
      openAi.says('Done.'),
    );
    await parley.converse(makeAgent('acme')).ask('How many?', {
      onToolCall: ({ name }) => seen.push(`calls ${name}`),
      onToolResult: ({ name, failed }) => seen.push(`${name} ${failed ? 'failed' : 'answered'}`),
    });
    expect(seen).toEqual([
      'calls count_objects',
      'count_objects answered',
      'calls query_class',
      'query_class failed',
    ]);
  });

  it('configure_pricing, token_usage, estimated_cost, reset_token_counts!: count, and begin at 0 again', async () => {
    const talk = parley.converse(makeAgent('acme'), { prices: { small: { input: 10, output: 30 } } });
    model.script(openAi.says('Many.', [1000, 100]));
    await talk.ask('How many?');
    expect([talk.usage.prompt, talk.usage.completion, talk.usage.total]).toEqual([1000, 100, 1100]);
    expect(talk.usage.costUsd).toBeCloseTo(0.013);
    talk.resetUsage();
    expect(talk.usage.total).toBe(0);
  });

  it('export_conversation, import_conversation: carry the history, and no permission', async () => {
    const talk = parley.converse(makeAgent('acme'));
    model.script(openAi.says('Noted.'));
    await talk.ask('Remember tea.');
    const saved = JSON.parse(talk.export()) as Record<string, unknown>;
    const later = parley.converse(makeAgent('acme'));
    expect(later.import(JSON.stringify({ ...saved, permissions: 'admin' }))).toBe(true);
    model.script(
      openAi.calls([{ name: 'create_object', args: { class_name: 'Post', fields: { title: 'x' } } }]),
      openAi.says('I may not.'),
    );
    const answer = await later.reply('Write it down');
    expect(answer.toolCalls).toMatchObject([{ name: 'create_object', failed: true }]);
  });

  it('allowed_tools, tool_allowed?: are those that a call permits', () => {
    const names = parley.runner.list(makeAgent('acme')).map(({ name }) => name);
    expect(names).toContain('fetch_slowly');
    expect(names).not.toContain('create_object');
    expect(parley.runner.permits(makeAgent('acme'), 'create_object', {})).toBe(false);
  });

  it('cancelled?, report_progress: end a handler that was cancelled, and report how far it is', async () => {
    const reported: unknown[] = [];
    const outcome = await parley.runner.run(
      'fetch_slowly',
      {},
      {
        agent: makeAgent('acme'),
        progress: (update) => void reported.push(update),
      },
    );
    expect([outcome, reported]).toMatchObject([
      { ok: true, data: { posts: 60 } },
      [{ progress: 1, total: 2 }],
    ]);
    const gone = parley.runner.run(
      'fetch_slowly',
      {},
      {
        agent: makeAgent('acme'),
        signal: AbortSignal.abort(),
      },
    );
    expect(await gone.catch((error: unknown) => ({ ok: false, error }))).toMatchObject({ ok: false });
  });
});

describe('agent_tenant_scope', () => {
  const run = (agent: Agent, tool: string, args: object = {}) =>
    parley.runner.run(tool, { class_name: 'Post', ...args }, agent);

  it.each<[string, object]>([
    ['query_class', { where: { orgId: 'globex' } }],
    ['count_objects', { where: { orgId: 'globex' } }],
    ['get_object', { object_id: 'foreign' }],
    ['get_objects', { ids: ['p01', 'foreign'] }],
  ])('refuses what names another tenant: %s %j', async (tool, args) => {
    const outcome = await run(makeAgent('acme'), tool, args);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'access_denied' } });
    expect(JSON.stringify(outcome)).not.toContain(SECRET);
  });

  it.each(['query_class', 'count_objects', 'get_sample_objects', 'export_data', 'group_by'])(
    'refuses %s to an agent without a tenant, unless the class lets it pass',
    async (tool) => {
      const args = tool === 'group_by' ? { field: 'status' } : {};
      expect(await run(makeAgent(), tool, args)).toMatchObject({
        ok: false,
        refusal: { code: 'access_denied' },
      });
      const operator = parley.agentFor({ agent: { permissions: 'admin' }, principal: 'operator' });
      expect(await run(operator, tool, args)).toMatchObject({ ok: true });
    },
  );

  it('holds inside of joins, which the guide leaves open', async () => {
    const lookup = { from: 'Post', localField: 'objectId', foreignField: 'author', as: 'posts' };
    const outcome = await parley.runner.run(
      'aggregate',
      { class_name: 'Author', pipeline: [{ $lookup: lookup }] },
      makeAgent('acme'),
    );
    expect(outcome).toMatchObject({ ok: true });
    expect(JSON.stringify(outcome)).not.toMatch(new RegExp(`${SECRET}|globex|foreign`));
  });
});

describe('Cost Telemetry Fields', () => {
  it('sum up what a turn cost', async () => {
    const { calls } = app.get(Dashboard);
    calls.length = 0;
    const agent = makeAgent('acme', 'turn-9');
    await parley.runner.run('query_class', { class_name: 'Post' }, agent);
    await parley.runner.run('query_class', { class_name: 'Contract' }, agent);
    const [answered, refused] = calls;
    const tokens = Math.floor(Number(answered?.result_size) / 4);
    expect(answered).toMatchObject({ correlation_id: 'turn-9', est_input_tokens: tokens });
    expect(answered?.est_cost_usd).toBeCloseTo((tokens * 3) / 1_000_000, 5);
    expect(refused).not.toHaveProperty('est_input_tokens');
    expect(refused).not.toHaveProperty('est_cost_usd');
  });
});
