import 'reflect-metadata';
import { Inject, Injectable, Module, UnauthorizedException } from '@nestjs/common';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { timingSafeEqual } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AGENT_FACTORY,
  type AgentChooser,
  AgentMethod,
  type AgentRateLimiter,
  AgentIntrospection,
  defineTool,
  type MethodCall,
  ParseClass,
  Parley,
  ParleyModule,
  Prompt,
  type PromptCall,
  SubAgents,
  Tool,
  type ToolCall,
  ToolRegistry,
  ToolRunner,
} from '@parley/server';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

/**
 * What the guide of the Ruby agent shows as code, as a TypeScript developer writes it: each has the name of its section there.
 */
const posts = await startDatabase(POSTS_SEED);

const STATIC_KEY = 'static-key-of-the-desk';
const isKey = (given: string) =>
  given.length === STATIC_KEY.length && timingSafeEqual(Buffer.from(given), Buffer.from(STATIC_KEY));

/** Custom Authentication: bearer token, static key with a constant time, roles mapped to agents; emit_artifact for one of them. */
const choose: AgentChooser = ({ headers }) => {
  const token = String(headers.authorization ?? '').replace(/^Bearer /, '');
  if (token === '') throw new UnauthorizedException('Authorization header missing');
  if (token === 'expired') throw new UnauthorizedException('token expired');
  if (token === 'broken') throw new Error('the verifier is down: SECRET');
  if (!isKey(token)) return null;
  const role = String(headers['x-role'] ?? 'reader');
  return {
    agent: role === 'dashboard' ? 'dashboard' : role === 'admin' ? 'writer' : 'reader',
    principal: `user-${role}`,
    tenantId: 'acme',
    correlationId: String(headers['mcp-session-id'] ?? `turn-${role}`),
  };
};

/** Rate Limiting in Per-Request Deployments. */
class SharedLimiter implements AgentRateLimiter {
  readonly rate = { limit: 2, window: 60 };
  private spent = 0;
  down = false;

  check() {
    if (this.down) throw new Error('connect ECONNREFUSED redis');
    this.spent += 1;
    if (this.spent > this.rate.limit)
      throw Object.assign(new Error('budget exhausted'), { retryAfter: 60, limit: 2, window: 60 });
    return true;
  }
}
const limiter = new SharedLimiter();

const artifacts: unknown[] = [];

@Injectable()
class Recipes {
  constructor(
    @Inject(SubAgents) private readonly subAgents: SubAgents,
    @Inject(ToolRunner) private readonly runner: ToolRunner,
  ) {}

  /** Registering custom tools. */
  @Tool({
    name: 'breakdown_posts',
    description: 'Count posts grouped by user, project, workspace or tenant with optional date window',
    category: 'analytics',
    timeout: 30,
    input: {
      type: 'object',
      properties: {
        group_by: { type: 'string', enum: ['user', 'project', 'workspace', 'tenant'] },
        since: { type: 'string', description: 'ISO8601 lower bound (inclusive)' },
      },
      required: ['group_by'],
    },
  })
  async breakdown({ group_by, since }: { group_by: string; since?: string }, call: ToolCall) {
    const where = since === undefined ? {} : { createdAt: { $gte: since } };
    return { success: true, data: { group_by, posts: await call.records.count('Post', { where }) } };
  }

  /** Tool-internal progress reporting. */
  @Tool({
    name: 'process_records',
    description: 'Process records with progress reporting',
    input: { type: 'object', properties: { limit: { type: 'integer', default: 3 } } },
  })
  process({ limit = 3 }: { limit?: number }, call: ToolCall) {
    for (let done = 1; done <= limit; done += 1)
      call.progress({ progress: done, total: limit, message: 'Processing' });
    return { success: true, data: { processed: limit } };
  }

  /** Cancellation: a tool that cooperates. */
  @Tool({ name: 'cancelled_itself', description: 'Ends as a cancelled call does.' })
  cancelled() {
    return { success: false, error: 'Cancelled by client', cancelled: true };
  }

  /** Structured tool output. */
  @Tool({
    name: 'record_summary',
    description: 'Summarize a record by id',
    input: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    output: {
      type: 'object',
      properties: { id: { type: 'string' }, title: { type: 'string' }, score: { type: 'number' } },
      required: ['id', 'title'],
    },
  })
  async summary({ id }: { id: string }, call: ToolCall) {
    const [row] = await call.records.find('Post', { where: { objectId: id }, limit: 1 });
    return { success: true, data: { id, title: row?.['title'] ?? 'unknown', score: 0.91 } };
  }

  /** parent: sub-agent inheritance, and recursion_depth. */
  @Tool({
    name: 'delegate_to_billing',
    description: 'Hand a billing question to a specialist sub-agent',
    input: { type: 'object', properties: { depth: { type: 'integer' } } },
  })
  async delegate({ depth = 1 }: { depth?: number }, call: ToolCall) {
    let inner = await this.subAgents.delegate(call, { tools: { only: ['count_objects'] } });
    for (let at = 1; at < depth; at += 1) inner = await this.subAgents.delegate(inner, {});
    const counted = await this.runner.run('count_objects', { class_name: 'Post' }, inner);
    const refused = await this.runner.run('query_class', { class_name: 'Post' }, inner);
    return {
      counted: counted.ok,
      refused: refused.ok,
      permissions: inner.agent.permissions,
      sameTurn: inner.agent.correlationId === call.agent.correlationId,
      tenant: inner.agent.tenantId,
    };
  }

  /** Recipe: dashboard-only emit_artifact tool. */
  @Tool({
    name: 'emit_artifact',
    description: 'Persist a chart or table artifact for the dashboard to reload later.',
    input: { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] },
  })
  emit({ title }: { title: string }, call: ToolCall) {
    artifacts.push({ title, actor: call.agent.correlationId });
    return { stored: artifacts.length };
  }

  /** Registering custom prompts. */
  @Prompt({
    name: 'team_health',
    description: 'Summary of workspace activity in the last 30 days',
    arguments: [{ name: 'team_id', description: 'objectId of the workspace', required: true }],
  })
  health({ args }: PromptCall) {
    return `Show activity for workspace ${args.get('team_id')}. Use count_objects and query_class.`;
  }
}

/** Authoring agent_method bodies. */
@ParseClass('Post')
class PostMethods {
  @AgentMethod({
    description: 'Archives a post.',
    permission: 'write',
    supportsDryRun: true,
    permittedKeys: ['reason'],
    parameters: { type: 'object', properties: { reason: { type: 'string' } }, required: ['reason'] },
  })
  archive({ reason }: { reason: string }, call: MethodCall) {
    return call.dryRun ? { would: `archive ${call.objectId}`, reason } : { archived: true };
  }
}

@Module({ providers: [Recipes, PostMethods] })
class RecipesModule {}

let app: NestExpressApplication;
let url: string;
let parley: Parley;

beforeAll(async () => {
  const agent = { permissions: 'readonly', rateLimit: 100_000 } as const;
  const module = await Test.createTestingModule({
    imports: [
      RecipesModule,
      ParleyModule.forRoot({
        database: { uri: posts.uri },
        policy: POSTS_POLICY,
        agents: {
          reader: { ...agent, tools: { except: ['emit_artifact'] } },
          dashboard: agent,
          writer: {
            ...agent,
            permissions: 'write',
            allowMutations: true,
            methods: ['archive', 'Post.archive'],
          },
          support: {
            ...agent,
            tools: { except: ['emit_artifact'] },
            classes: { only: ['Post', 'Author'] },
            filters: { Post: { archived: false }, default: { orgId: 'acme' } },
          },
        },
        gates: { PARSE_AGENT_ALLOW_WRITE_TOOLS: true } as never,
        providers: [{ provide: AGENT_FACTORY, useValue: choose }],
      }),
    ],
  }).compile();
  app = module.createNestApplication<NestExpressApplication>(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  url = `${await app.getUrl()}/mcp`;
  parley = app.get(Parley);
});
afterAll(() => app?.close());

const as = (role: string) => ({ authorization: `Bearer ${STATIC_KEY}`, 'x-role': role });
const call = async (name: string, args: object, role = 'reader') => callTool({ url }, name, args, as(role));

describe('Custom Authentication', () => {
  const status = async (authorization?: string) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(authorization !== undefined && { authorization }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });
    return { status: response.status, body: await response.text() };
  };

  it.each([undefined, 'Bearer expired', 'Bearer wrong'])('answers %s with one fixed 401', async (header) => {
    const { status: code, body } = await status(header);
    expect(code).toBe(401);
    expect(JSON.parse(body)).toMatchObject({ error: { code: -32001, message: 'Unauthorized' } });
    expect(body).not.toMatch(/missing|expired/);
  });

  it('answers any other error of the factory with 500, and without its text', async () => {
    const { status: code, body } = await status('Bearer broken');
    expect(code).toBe(500);
    expect(body).not.toContain('SECRET');
  });
});

describe('Rate Limiting in Per-Request Deployments', () => {
  it('counts one budget over agents made for each request, and hides that the limiter is down', async () => {
    const run = async () => {
      const agent = parley.agentFor({
        agent: { permissions: 'readonly', rateLimiter: limiter },
        principal: 'nightly',
        tenantId: 'acme',
      });
      return parley.runner.run('count_objects', { class_name: 'Post' }, agent);
    };
    expect([(await run()).ok, (await run()).ok]).toEqual([true, true]);
    const limited = await run();
    limiter.down = true;
    const failed = await run();
    for (const outcome of [limited, failed])
      expect(outcome).toMatchObject({ ok: false, refusal: { code: 'rate_limited' } });
    // Why it failed is for records alone.
    const { cause, ...sent } = 'refusal' in failed ? failed.refusal : { cause: undefined };
    expect(cause).toContain('ECONNREFUSED');
    expect(JSON.stringify(sent)).not.toContain('ECONNREFUSED');
  });
});

describe('Custom Tools', () => {
  it('breakdown_posts: has a category, an enum and the envelope of handlers', async () => {
    const { body } = await rpc({ url }, 'tools/list', { category: 'analytics' }, as('reader'));
    expect((body['result'] as { tools: object[] }).tools).toMatchObject([
      { name: 'breakdown_posts', _meta: { category: 'analytics' } },
    ]);
    const { text } = await call('breakdown_posts', { group_by: 'tenant', since: '2025-01-01T00:00:00Z' });
    expect(JSON.parse(text)).toEqual({ group_by: 'tenant', posts: 60 });
    expect((await call('breakdown_posts', { group_by: 'planet' })).isError).toBe(true);
  });

  it('process_records: reports progress and answers with data alone', async () => {
    expect(JSON.parse((await call('process_records', { limit: 2 })).text)).toEqual({ processed: 2 });
  });

  it('a handler that ends itself as cancelled is answered as a cancelled call', async () => {
    const { isError, text } = await call('cancelled_itself', {});
    expect([isError, text]).toEqual([true, expect.stringContaining('Cancelled by client')]);
  });

  it('record_summary: declares its output and sends structured content', async () => {
    const { data } = await call('record_summary', { id: 'p01' });
    expect(data).toEqual({ id: 'p01', title: 'Post 1', score: 0.91 });
  });

  it('list_tools: names categories, those of the application included', async () => {
    const { data } = await call('list_tools', {});
    expect(data).toMatchObject({
      categories: { schema: expect.any(String), discovery: expect.any(String), custom: expect.any(String) },
    });
    expect(JSON.stringify(data)).toContain('analytics');
  });

  it('tells a subscriber of the registry of each change', () => {
    const registry = app.get(ToolRegistry);
    let changes = 0;
    const subscription = registry.changes.subscribe(() => (changes += 1));
    const { definition } = defineTool({ name: 'late_tool', description: 'Comes later.' });
    registry.register({ definition, handler: () => 1 })();
    subscription.unsubscribe();
    expect(changes).toBe(2);
  });
});

describe('Per-Agent Tool Filtering & Sub-Agent Delegation', () => {
  it('emit_artifact: only the dashboard sees and calls it, on one mount', async () => {
    const names = async (role: string) => {
      const { body } = await rpc({ url }, 'tools/list', {}, as(role));
      return (body['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name);
    };
    expect(await names('dashboard')).toContain('emit_artifact');
    expect(await names('reader')).not.toContain('emit_artifact');
    expect((await call('emit_artifact', { title: 'x' }, 'reader')).isError).toBe(true);
    expect((await call('emit_artifact', { title: 'Sales' }, 'dashboard')).isError).toBe(false);
    expect(artifacts).toEqual([{ title: 'Sales', actor: 'turn-dashboard' }]);
  });

  it('delegate_to_billing: narrower tools, the same turn and tenant, a depth that ends', async () => {
    const { text } = await call('delegate_to_billing', {});
    expect(JSON.parse(text)).toEqual({
      counted: true,
      refused: false,
      permissions: 'readonly',
      sameTurn: true,
      tenant: 'acme',
    });
    expect((await call('delegate_to_billing', { depth: 5 })).isError).toBe(true);
  });

  it('archive: a declared method runs dry, and refuses other keys and other agents', async () => {
    const args = { class_name: 'Post', method_name: 'archive', object_id: 'p01' };
    const dry = await call('call_method', { ...args, arguments: { reason: 'old', dry_run: true } }, 'admin');
    expect(dry.text).toContain('archive p01');
    const other = { ...args, arguments: { reason: 'old', force: true } };
    expect((await call('call_method', other, 'admin')).isError).toBe(true);
    expect((await call('call_method', { ...args, arguments: { reason: 'old' } }, 'reader')).isError).toBe(
      true,
    );
  });

  it('describe, describe_for, would_permit? and filter_for answer for an agent', async () => {
    const introspection = app.get(AgentIntrospection);
    const agent = parley.agentFor({ agent: 'support', principal: 'sue', tenantId: 'acme' });
    const described = await introspection.describe({ agent });
    expect(described).toMatchObject({
      permissions: 'readonly',
      tenant_id: 'acme',
      classes: { only: ['Author', 'Post'] },
      tools: { except: ['emit_artifact'] },
      auth: { mode: 'master_key' },
    });
    expect(JSON.stringify((described as { filters?: unknown }).filters)).not.toContain('false');
    expect(await introspection.describeFor(agent, 'Post')).toMatchObject({
      class_name: 'Post',
      accessible: 'permitted',
      per_agent_filter: ['archived', 'orgId'],
    });
    expect(await introspection.wouldPermit(agent, 'query_class', { class_name: 'Post' })).toEqual({
      allowed: true,
    });
    expect(await introspection.wouldPermit(agent, 'emit_artifact')).toMatchObject({
      allowed: false,
      reason: 'tool_filtered',
    });
    expect(await introspection.wouldPermit(agent, 'query_class', { class_name: '_User' })).toMatchObject({
      allowed: false,
      reason: 'class_filter',
    });
    // describe_for shows values there; here they are what filterFor is asked for.
    expect(await introspection.filterFor(agent, 'Post')).toEqual({ archived: false, orgId: 'acme' });
  });

  it.each<[string, object]>([
    ['a tool that does not exist where names are strict', { tools: ['qurey_class'], strictToolFilter: true }],
    ['an operator that does not exist', { filters: { Post: { likes: { $gtt: 5 } } } }],
    ['two identities', { identity: { user: 'u1', role: 'admin' } }],
  ])('refuses %s when the agent is made', (_, options) => {
    expect(() =>
      parley.agentFor({
        agent: { permissions: 'readonly', ...options } as never,
        principal: 'x',
        tenantId: 'acme',
      }),
    ).toThrow(TypeError);
  });
});

describe('Prompts', () => {
  it('team_health: is listed and rendered with its argument, and needs it', async () => {
    const got = await rpc(
      { url },
      'prompts/get',
      { name: 'team_health', arguments: { team_id: 't7' } },
      as('reader'),
    );
    expect(JSON.stringify(got.body)).toContain('workspace t7');
    const without = await rpc({ url }, 'prompts/get', { name: 'team_health' }, as('reader'));
    expect(without.body).toMatchObject({ error: { code: -32602 } });
  });
});

describe('Batch pointer resolution: get_objects', () => {
  it('answers by id, each once, with what is included, and takes at most 50', async () => {
    const ids = ['p01', 'p02', 'p01'];
    const { data } = await call('get_objects', { class_name: 'Post', ids, include: ['author'] });
    expect(data).toMatchObject({
      objects: { p01: { author: { name: 'Ann' } }, p02: {} },
      missing: [],
      requested: 2,
      found: 2,
    });
    const many = Array.from({ length: 51 }, (_, at) => `x${at}`);
    expect((await call('get_objects', { class_name: 'Post', ids: many })).isError).toBe(true);
  });
});
