import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AGENT_FACTORY, type Agent, Parley, ParleyModule } from '@parley/server';
import { openAi, startModelServer } from '../../../libs/chat/src/contracts/model-server.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

/**
 * What the later sections of the Ruby agent's guide, its class reference and its Rack application show as code, as a TypeScript
 * developer writes it in an application: each has the name of its section there.
 */
const posts = await startDatabase(POSTS_SEED);

/** ActiveSupport::Notifications: a subscriber that feeds StatsD. */
@Injectable()
class Statsd {
  readonly sent: string[] = [];

  @OnEvent('parse.agent.tool_call')
  count(call: { tool: string; success: boolean; error_code?: string; duration_ms: number }) {
    const outcome = call.success ? 'success' : `error:${call.error_code}`;
    if (Number.isFinite(call.duration_ms)) this.sent.push(`${call.tool} ${outcome}`);
  }
}
@Module({ providers: [Statsd], exports: [Statsd] })
class StatsdModule {}

let app: NestExpressApplication;
let url: string;
let parley: Parley;
let agent: Agent;
beforeAll(async () => {
  const module = await Test.createTestingModule({
    imports: [
      EventEmitterModule.forRoot({ wildcard: true }),
      StatsdModule,
      ParleyModule.forRoot({
        database: { uri: posts.uri },
        policy: POSTS_POLICY,
        agents: { reader: { permissions: 'readonly', rateLimit: 100_000 } },
        server: { requireCustomHeader: 'X-MCP-Client', allowedOrigins: ['.example.com'] },
        environment: { PARSE_MCP_ENABLED: 'true' },
        providers: [
          {
            provide: AGENT_FACTORY,
            useValue: ({ headers }: { headers: Record<string, unknown> }) =>
              headers['x-key'] === 'good' ? { agent: 'reader', principal: 'ann', tenantId: 'acme' } : null,
          },
        ],
      }),
    ],
  }).compile();
  app = module.createNestApplication<NestExpressApplication>(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  url = `${await app.getUrl()}/mcp`;
  parley = app.get(Parley);
  agent = parley.agentFor({ agent: 'reader', principal: 'nightly', tenantId: 'acme' });
});
afterAll(() => app?.close());

const execute = async (tool: string, args: object, as = agent) => {
  const outcome = await parley.runner.run(tool, args as Record<string, unknown>, as);
  if (!outcome.ok) throw new Error(`${outcome.refusal.code}: ${outcome.refusal.message}`);
  return outcome.data as Record<string, unknown>;
};

describe('Testing Your MCP Integration', () => {
  const handle = (method: string, params: object) =>
    parley.handle({ jsonrpc: '2.0', id: 1, method, params }, agent);

  it('answers messages without HTTP, and never rejects', async () => {
    const listed = await handle('tools/list', {});
    expect(listed.status).toBe(200);
    expect(JSON.stringify(listed.body)).toContain('"name":"query_class"');
    expect(await handle('no_such_method', {})).toMatchObject({ body: { error: { code: -32601 } } });
    expect(await handle('tools/call', {})).toMatchObject({ body: { error: { code: -32602 } } });
  });

  it('asks a model with the tools of the agent, and counts what it costs', async () => {
    const model = await startModelServer();
    try {
      const talk = parley.converse(agent, {
        model: { provider: 'lmstudio', endpoint: `${model.url}/v1` },
        prices: { 'local-model': { input: 10, output: 30 } },
      });
      model.script(
        openAi.calls([{ name: 'count_objects', args: { class_name: 'Post' } }]),
        openAi.says('60 posts.'),
      );
      const answer = await talk.ask('How many posts are there?');
      expect(answer.text).toContain('60');
      expect(answer.toolCalls.some(({ name }) => name === 'count_objects')).toBe(true);
      const turns: string[] = [];
      model.script(openAi.says('None.'));
      await answer.reply('And drafts?', { onModelTurn: (text) => turns.push(text) });
      expect(turns).toEqual(['None.']);
      const saved = talk.export();
      talk.reset();
      expect(talk.history).toEqual([]);
      expect(talk.import(saved)).toBe(true);
      model.script(openAi.says('Going on.'));
      expect((await talk.reply('Continue from where we left off')).text).toBe('Going on.');
    } finally {
      await model.stop();
    }
  });
});

describe('ActiveSupport::Notifications', () => {
  it('reach a subscriber with what a metric needs, for refusals of a tool too', async () => {
    const statsd = app.get(Statsd);
    statsd.sent.length = 0;
    await execute('count_objects', { class_name: 'Post' });
    await execute('query_class', { class_name: 'Contract' }).catch(() => undefined);
    expect(statsd.sent).toEqual(['count_objects success', 'query_class error:access_denied']);
  });
});

describe('Schema Tool Filters: get_all_schemas', () => {
  it.each<[object, string[]]>([
    [{ names: ['Post', 'Author', 'Contract'] }, ['Author', 'Post']],
    [{ prefix: 'Po' }, ['Post']],
    [{ names: ['Post', 'Author'], prefix: 'A' }, ['Author']],
    [{ prefix: 'post' }, []],
  ])('%j narrow the answer and tell nothing of a hidden class', async (args, expected) => {
    const { custom = [] } = (await execute('get_all_schemas', args)) as { custom?: { name: string }[] };
    expect(custom.map(({ name }) => name).sort()).toEqual(expected);
  });
});

describe('Aggregation', () => {
  const aggregate = (pipeline: object[], more: object = {}) =>
    execute('aggregate', { class_name: 'Post', pipeline, ...more });

  it('ends by itself where the pipeline has no end, and says so only when it did', async () => {
    expect(await aggregate([{ $match: { status: 'live' } }, { $count: 'total' }])).toMatchObject({
      results: [{ total: 40 }],
    });
    expect(await aggregate([{ $group: { _id: '$status' } }])).not.toHaveProperty('auto_limited');
  });

  it('compacts pointers, and gives their stored form when asked', async () => {
    const pipeline = [
      { $match: { likes: { $lt: 2 } } },
      { $sort: { likes: 1 } },
      { $project: { objectId: 1, author: 1 } },
    ];
    expect(await aggregate(pipeline)).toMatchObject({
      results: [
        { objectId: 'p00', author: 'a1' },
        { objectId: 'p01', author: 'a1' },
      ],
      pointer_classes: { author: 'Author' },
    });
    const raw = await aggregate(pipeline, { compact_pointers: false });
    expect(raw['results']).toEqual([
      { objectId: 'p00', _p_author: 'Author$a1' },
      { objectId: 'p01', _p_author: 'Author$a1' },
    ]);
    expect(raw).not.toHaveProperty('pointer_classes');
  });

  it('filters and sorts by what a group made, though no field has its name', async () => {
    const { results } = await aggregate([
      { $group: { _id: '$status', total_sum: { $sum: '$likes' } } },
      { $match: { total_sum: { $gt: 100 } } },
      { $sort: { total_sum: -1 } },
      { $limit: 10 },
    ]);
    expect(results).toEqual([
      { _id: 'live', total_sum: 1200 },
      { _id: 'draft', total_sum: 570 },
    ]);
  });
});

describe('High-Level Aggregation Helpers', () => {
  it('group_by: counts, resolves pointers, flattens arrays and keeps the top', async () => {
    const byAuthor = await execute('group_by', { class_name: 'Post', field: 'author' });
    expect(byAuthor).toMatchObject({ pointer_class: 'Author', groups: [{ key: 'a1', value: 60 }] });
    const { groups } = byAuthor as { groups: { key: string }[] };
    const ids = groups.map(({ key }) => key);
    expect(await execute('get_objects', { class_name: 'Author', ids })).toMatchObject({
      objects: { a1: { name: 'Ann' } },
    });
    expect(
      await execute('group_by', {
        class_name: 'Post',
        field: 'tags',
        flatten_arrays: true,
        sort: 'value_desc',
        limit: 1,
      }),
    ).toMatchObject({ groups: [{ key: 'tea', value: 60 }], truncated: true });
  });

  it('group_by_date: has keys to read, in a time zone', async () => {
    const args = { class_name: 'Post', field: 'createdAt', interval: 'day', timezone: 'America/New_York' };
    const { groups } = (await execute('group_by_date', args)) as { groups: object[] };
    expect(groups[0]).toEqual({ key: '2025-01-01', value: 3 });
  });

  it('distinct: lists values, of pointers by id', async () => {
    expect(await execute('distinct', { class_name: 'Post', field: 'status', sort: 'desc' })).toMatchObject({
      values: ['live', 'draft'],
    });
    expect(await execute('distinct', { class_name: 'Post', field: 'author' })).toMatchObject({
      pointer_class: 'Author',
      values: ['a1'],
    });
  });

  it('dry_run: shows a pipeline that aggregate takes', async () => {
    const args = {
      class_name: 'Post',
      field: 'status',
      operation: 'sum',
      value_field: 'likes',
      sort: 'value_desc',
      limit: 10,
    };
    const shown = await execute('group_by', { ...args, dry_run: true });
    expect(shown).toMatchObject({ dry_run: true });
    const { results } = await execute('aggregate', { class_name: 'Post', pipeline: shown['pipeline'] });
    expect(results).toEqual([
      { _id: 'live', value: 1200 },
      { _id: 'draft', value: 570 },
    ]);
  });
});

describe('export_data and query_class(format:)', () => {
  const first = { class_name: 'Post', where: { objectId: 'p01' } };

  it('write the same envelope, with columns under names of the caller', async () => {
    const columns = ['title', { likes: 'Votes' }, { 'author.name': 'Author' }];
    expect(
      await execute('export_data', { ...first, include: ['author'], columns, format: 'csv' }),
    ).toMatchObject({
      headers: ['title', 'Votes', 'Author'],
      row_count: 1,
      output: 'title,Votes,Author\nPost 1,1,Ann\n',
    });
    expect(await execute('query_class', { ...first, keys: ['title'], format: 'csv' })).toMatchObject({
      format: 'csv',
      row_count: 1,
    });
    const pipeline = [{ $group: { _id: '$status', n: { $sum: 1 } } }, { $sort: { _id: 1 } }];
    const { output } = await execute('export_data', { class_name: 'Post', pipeline, format: 'markdown' });
    expect(output).toMatch(/^\| _id \| n \|\n/);
  });

  it.each([[[{ a: 'x', b: 'y' }]], [[5]]])('refuse the columns %j', async (columns) => {
    await expect(execute('export_data', { ...first, columns })).rejects.toThrow('invalid_argument');
  });
});

describe('Joins and schemas', () => {
  it('agent_join_fields: name what an include left out, until a path asks for it', async () => {
    const asked = { class_name: 'Post', where: { objectId: 'p01' }, include: ['author'] };
    const narrowed = await execute('query_class', { ...asked, keys: ['title', 'author'] });
    expect(narrowed).toMatchObject({
      results: [{ author: { name: 'Ann' } }],
      truncated_include_fields: { author: expect.arrayContaining(['bio']) as string[] },
    });
    const named = await execute('query_class', { ...asked, keys: ['title', 'author.bio'] });
    expect(named).toMatchObject({ results: [{ author: { bio: 'Writes about tea' } }] });
    expect(named).not.toHaveProperty('truncated_include_fields');
  });

  it('_description and _enum: are there for the model, with a hint for pointers', async () => {
    const { fields } = (await execute('get_schema', { class_name: 'Post' })) as {
      fields: Record<string, unknown>[];
    };
    const status = fields.find(({ name }) => name === 'status');
    expect(status?.['allowed_values']).toMatchObject([{ value: 'draft' }, { value: 'live' }]);
    const author = fields.find(({ name }) => name === 'author');
    expect(author?.['query_hint']).toContain('{"author":"<objectId>"}');
  });
});

describe('allow_mutations', () => {
  it('is one of several gates, and no sub-agent opens it', async () => {
    const reader = parley.agentFor({
      agent: { permissions: 'write', allowMutations: false },
      principal: 'n',
      tenantId: 'acme',
    });
    const fields = { title: 'x' };
    await expect(execute('create_object', { class_name: 'Post', fields }, reader)).rejects.toThrow(
      'access_denied',
    );
    await expect(parley.subAgents.delegate(reader, { allowMutations: true })).rejects.toThrow(
      'allowMutations: true under a parent',
    );
  });
});

describe('MCPRackApp', () => {
  const list = (headers: Record<string, string>) => rpc({ url }, 'tools/list', {}, headers);
  const client = { 'X-MCP-Client': 'desk' };

  it('runs the block for each request, behind a header of its own and the origins', async () => {
    expect((await list({ ...client, 'X-Key': 'good' })).status).toBe(200);
    expect((await list({ ...client, 'X-Key': 'bad' })).status).toBe(401);
    expect((await list({ 'X-Key': 'good' })).status).toBe(403);
    expect((await list({ ...client, 'X-Key': 'good', Origin: 'https://evil.test' })).status).toBe(403);
    expect((await list({ ...client, 'X-Key': 'good', Origin: 'https://desk.example.com' })).status).toBe(200);
  });

  it('answers over HTTP what it answers in process', async () => {
    const args = { class_name: 'Post' };
    const answer = await callTool({ url }, 'count_objects', args, { ...client, 'X-Key': 'good' });
    expect(answer.data['count']).toBe((await execute('count_objects', args))['count']);
  });
});

describe('MCPSubscriptions', () => {
  it('are of counts and samples: no schema is one', async () => {
    const subscribe = (uri: string) =>
      parley.handle({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } }, agent);
    expect(await subscribe('parse://Post/schema')).toMatchObject({ body: { error: { code: -32602 } } });
    expect(await subscribe('parse://Contract/count')).toMatchObject({
      body: { error: expect.anything() as object },
    });
  });
});
