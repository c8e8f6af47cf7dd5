import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type INestApplication,
  Module,
  Post,
  UseGuards,
  VersioningType,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  AGENT_FACTORY,
  type AgentChooser,
  AgentFields,
  AuditSink,
  Authenticator,
  ConfigError,
  getParleyToken,
  Parley,
  ParleyExecutionContext,
  ParleyHealthIndicator,
  ParleyModule,
  type ParleyModuleOptions,
  ParseClass,
  Prompt,
  Tool,
  type ToolCall,
  ToolRegistry,
} from '@parley/server';
import { POSTS_SEED, POSTS_POLICY, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

const KEY = { 'X-MCP-API-Key': 'key-of-the-desk' };
const posts = await startDatabase(POSTS_SEED);
const database = { uri: posts.uri };

@Injectable()
class Settings {
  readonly parley: ParleyModuleOptions = {
    database,
    policy: POSTS_POLICY,
    agents: { desk: { permissions: 'readonly', tenantId: 'acme' } },
    auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
    server: { drainTimeout: 2 },
  };
}

@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

@Injectable()
class OpenHours {
  isOpen = true;
}

@Injectable()
class WhileOpen implements CanActivate {
  constructor(private readonly hours: OpenHours) {}

  canActivate(context: ExecutionContext): boolean {
    const { definition } = ParleyExecutionContext.create(context).getAgent();
    return this.hours.isOpen && definition.name === 'desk';
  }
}
Reflect.defineMetadata('design:paramtypes', [OpenHours], WhileOpen);

@Injectable()
class PostTools {
  @Tool({ name: 'live_posts', description: 'How many posts are live.' })
  async live(_: object, call: ToolCall) {
    return { live: await call.records.count('Post', { where: { status: 'live' } }) };
  }

  @UseGuards(WhileOpen)
  @Tool({ name: 'guarded', description: 'While the desk is open.' })
  guarded() {
    return { open: true };
  }

  @Tool({ name: 'waits', description: 'Waits until the test ends it.' })
  waits(_: object, call: ToolCall) {
    return new Promise((resolve) => {
      waiting.begun();
      void waiting.end.then(() => resolve({ aborted: call.signal.aborted }));
    });
  }

  @Prompt({ name: 'weekly', description: 'The week.' })
  weekly() {
    return 'The week in posts';
  }
}

/** One call that waits, and the test that waits for its beginning. */
const waiting = { begun: () => {}, end: Promise.resolve() };

@ParseClass('Author')
@AgentFields('name')
@Injectable()
class AuthorRules {}

@Injectable()
class BillingTools {
  @Tool({ name: 'who_am_i', description: 'As whom it runs.' })
  who(_: object, { agent }: ToolCall) {
    return { agent: agent.definition.name, tenant: agent.tenantId, kind: agent.identity.kind };
  }
}

@Injectable()
class UnlistedTools {
  @Tool({ name: 'unlisted', description: 'Nobody offers it.' })
  unlisted() {
    return {};
  }
}

@Controller('echo')
class EchoController {
  constructor(private readonly health: HealthCheckService) {}

  @Post()
  echo(@Body() body: object) {
    return { body };
  }

  @Get('health')
  check() {
    return this.health.check([() => indicator.isHealthy('parley')]);
  }
}
Reflect.defineMetadata('design:paramtypes', [HealthCheckService], EchoController);

let indicator: ParleyHealthIndicator;

const choose: AgentChooser = ({ headers }) => {
  const user = headers['x-user'];
  if (user === 'nobody') return null;
  if (user === 'confused') return { agent: 'no such agent', principal: 'confused' };
  if (user === 'empty') return { agent: 'biller', principal: 'empty', identity: {} as never };
  if (user === 'direct') return { agent: 'direct', principal: 'direct', identity: { user: 'u1' } };
  return { agent: 'biller', principal: String(user), identity: { user: 'u1' }, tenantId: 'acme' };
};

const application = (configure = (builder: TestingModuleBuilder) => builder) =>
  configure(
    Test.createTestingModule({
      imports: [
        TerminusModule,
        ParleyModule.forRootAsync({
          imports: [SettingsModule],
          inject: [Settings],
          useFactory: ({ parley }: Settings) => parley,
        }),
        ParleyModule.forRoot({
          name: 'billing',
          database,
          policy: POSTS_POLICY,
          server: { path: '/billing' },
          agents: { biller: { permissions: 'readonly' }, direct: { clientMode: true } },
          providers: [{ provide: AGENT_FACTORY, useValue: choose }],
        }),
        ParleyModule.forRoot({ name: 'closed', server: { path: '/closed' } }),
        ParleyModule.forFeature([PostTools, AuthorRules]),
        ParleyModule.forFeature([BillingTools], { instance: 'billing' }),
        RouterModule.register([{ path: 'agents', module: ParleyModule }]),
      ],
      controllers: [EchoController],
      providers: [PostTools, AuthorRules, OpenHours, BillingTools, UnlistedTools],
    }),
  ).compile();

const adapters = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const;

describe.each(adapters)('an application on %s with Parley in it', (_, adapter) => {
  let app: INestApplication;
  let origin: string;
  const met: string[] = [];
  const desk = () => ({ url: `${origin}/api/v1/agents/mcp` });
  const billing = () => ({ url: `${origin}/api/v1/agents/billing` });
  const toolNames = async (at: { url: string }, headers: Record<string, string>) => {
    const { body } = await rpc(at, 'tools/list', {}, headers);
    return (body['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name);
  };
  const answered = async (at: { url: string }, tool: string, headers: Record<string, string> = KEY) =>
    JSON.parse((await callTool(at, tool, {}, headers)).text) as unknown;

  beforeAll(async () => {
    const compiled = await application();
    app = compiled.createNestApplication(adapter() as never, { logger: false });
    app.setGlobalPrefix('api');
    app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
    app.enableShutdownHooks();
    app.use((request: { url: string }, _response: unknown, next: () => void) => {
      met.push(request.url);
      next();
    });
    await app.listen(0, '127.0.0.1');
    origin = await app.getUrl();
    indicator = app.get(ParleyHealthIndicator);
  });

  it('serves MCP below its prefix, version and route path, governed, and nowhere else', async () => {
    const posts: readonly { status?: string; orgId?: string; archived?: boolean }[] = POSTS_SEED.objects.Post;
    const all = posts.filter(
      ({ status, orgId, archived }) => status === 'live' && orgId === 'acme' && archived !== true,
    );
    expect(await answered(desk(), 'live_posts')).toEqual({ live: all.length });
    for (const path of ['/mcp', '/api/mcp', '/api/v1/mcp', '/agents/mcp', '/api/v2/agents/mcp']) {
      const { status } = await fetch(`${origin}${path}`, { method: 'POST', headers: KEY });
      expect({ path, status }).toEqual({ path, status: 404 });
    }
  });

  it('lets nobody in without credentials', async () => {
    expect((await rpc(desk(), 'tools/list')).status).toBe(401);
    expect((await rpc(desk(), 'tools/list', {}, { 'X-MCP-API-Key': 'wrong' })).status).toBe(401);
  });

  it('leaves the application its own routes and bodies, and shows MCP to none of its middleware', async () => {
    const answer = await fetch(`${origin}/api/v1/echo`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"a":1}',
    });
    expect(await answer.json()).toEqual({ body: { a: 1 } });
    expect(met.some((url) => url.includes('echo'))).toBe(true);
    expect(met.filter((url) => url.includes('agents/') && !url.includes('v2'))).toEqual(
      met.filter((url) => url.startsWith('/agents/mcp')),
    );
  });

  it('serves at each instance the tools that are listed for it, and no other', async () => {
    const own = await toolNames(desk(), KEY);
    const others = await toolNames(billing(), { 'X-User': 'ada' });
    expect(own).toEqual(expect.arrayContaining(['query_class', 'live_posts', 'guarded']));
    expect(others).toEqual(expect.arrayContaining(['query_class', 'who_am_i']));
    expect(own).not.toContain('who_am_i');
    expect(others).not.toContain('live_posts');
    for (const names of [own, others]) expect(names).not.toContain('unlisted');
    expect((await callTool(desk(), 'unlisted', {}, KEY)).isError).toBe(true);
  });

  it('offers prompts of its providers', async () => {
    const { text } = await rpc(desk(), 'prompts/get', { name: 'weekly' }, KEY);
    expect(text).toContain('The week in posts');
  });

  it('runs guards of the application, with what they inject, after its own gates', async () => {
    const hours = app.get(OpenHours);
    expect(await answered(desk(), 'guarded')).toEqual({ open: true });
    hours.isOpen = false;
    expect((await callTool(desk(), 'guarded', {}, KEY)).code).toBe('access_denied');
    hours.isOpen = true;
  });

  it('narrows the policy of its instance by the classes it declares', async () => {
    const { wire } = await callTool(desk(), 'query_class', { class_name: 'Author' }, KEY);
    expect(wire).toContain('Ann');
    expect(wire).not.toContain('Writes about tea');
    expect(wire).not.toContain(SECRET);
  });

  it('runs a request as whom the agent factory says, with its identity and tenant', async () => {
    expect(await answered(billing(), 'who_am_i', { 'X-User': 'ada' })).toEqual({
      agent: 'biller',
      tenant: 'acme',
      kind: 'aclUser',
    });
  });

  it.each([
    ['nobody', 401],
    ['confused', 500],
    ['empty', 500],
    // An agent in client mode reads with a session alone, whatever code chooses.
    ['direct', 500],
  ])('admits nobody when the factory chooses %s, and gives no reason', async (user, status) => {
    const { status: told, text } = await rpc(billing(), 'tools/list', {}, { 'X-User': user });
    expect(told).toBe(status);
    expect(text).not.toMatch(/agent|identity|principal|client mode/i);
  });

  it('admits nobody at an instance without authentication rules, not even from this machine', async () => {
    const closed = { url: `${origin}/api/v1/agents/closed` };
    for (const headers of [{}, KEY, { 'X-User': 'ada' }] as Record<string, string>[])
      expect((await rpc(closed, 'tools/list', {}, headers)).status).toBe(401);
  });

  it('is not reached by a foreign host name, from a foreign page, nor under another spelling of its path', async () => {
    const spelled = (path: string) => fetch(`${origin}${path}`, { method: 'POST', headers: KEY, body: '{}' });
    for (const path of ['/api/v1/agents/%6dcp', '/api/v1//agents/mcp', '/api/v1/agents/billing/../%6dcp'])
      expect({ path, status: (await spelled(path)).status }).toEqual({ path, status: 404 });
    const foreign = { 'X-User': 'ada', Origin: 'https://evil.example' };
    expect((await rpc(billing(), 'tools/list', {}, foreign)).status).toBe(403);
    const named = request(desk().url, { method: 'POST', headers: { ...KEY, Host: 'evil.example' } });
    const [answer] = (await once(named.end('{}'), 'response')) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(403);
  });

  it('takes no key of one instance at another', async () => {
    const { text } = await rpc(billing(), 'tools/list', {}, { ...KEY, 'X-User': 'nobody' });
    expect(text).toContain('Unauthorized');
  });

  it('registers and removes tools while it runs, at one instance', async () => {
    const remove = app.get(ToolRegistry).register({
      definition: app.get<Parley>(getParleyToken('billing')).tools.get('who_am_i')!.definition,
      handler: () => ({ here: true }),
    });
    expect(await answered(desk(), 'who_am_i')).toEqual({ here: true });
    remove();
    expect(await toolNames(desk(), KEY)).not.toContain('who_am_i');
    expect(await toolNames(billing(), { 'X-User': 'ada' })).toContain('who_am_i');
  });

  it('is healthy to terminus while its dependencies are there', async () => {
    const answer = await fetch(`${origin}/api/v1/echo/health`);
    expect(await answer.json()).toMatchObject({
      status: 'ok',
      info: { parley: { status: 'up', dependencies: { mongodb: 'up' } } },
    });
  });

  it('lets a running call end when the application closes, and ends open streams', async () => {
    const begun = new Promise<void>((resolve) => (waiting.begun = resolve));
    let end = () => {};
    waiting.end = new Promise<void>((resolve) => (end = resolve));
    const opened = await rpc(
      desk(),
      'initialize',
      { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'reader', version: '1' } },
      KEY,
    );
    const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') ?? '' };
    const stream = await fetch(desk().url, { headers: { ...KEY, ...session, Accept: 'text/event-stream' } });
    expect(stream.status).toBe(200);
    const call = answered(desk(), 'waits');
    await begun;
    const closed = app.close();
    await stream.text();
    end();
    expect(await call).toEqual({ aborted: false });
    await closed;
    await expect(fetch(desk().url)).rejects.toThrow('fetch failed');
  });
});

describe('Parley in a testing module', () => {
  it('is asked in process, with providers that a test overrides', async () => {
    const heard: unknown[] = [];
    class Heard extends AuditSink {
      override record(event: unknown): void {
        heard.push(event);
      }
      override recordEvent(event: unknown): void {
        heard.push(event);
      }
    }
    const compiled = await application((builder) =>
      builder.overrideProvider(AuditSink).useValue(new Heard()),
    );
    await compiled.init();
    const parley = compiled.get(Parley);
    await expect(
      parley.get(Authenticator).authenticate({
        headers: { 'x-mcp-api-key': 'wrong' },
        remoteAddress: '127.0.0.1',
        method: 'POST',
      }),
    ).rejects.toThrow('Unauthorized');
    expect(heard.length).toBeGreaterThan(0);
    await compiled.close();
  });

  it('does not start twice under one name, nor at one path', async () => {
    const starting = async (other: { name?: string; server?: { path: string } }) => {
      const both = [ParleyModule.forRoot({ name: 'one' }), ParleyModule.forRoot(other)];
      const compiled = await Test.createTestingModule({ imports: both }).compile();
      const app = compiled.createNestApplication(new ExpressAdapter(), { logger: false });
      try {
        return await app.init();
      } finally {
        await app.close();
      }
    };
    await expect(starting({ name: 'one', server: { path: '/other' } })).rejects.toThrow('instance one');
    await expect(starting({ name: 'other' })).rejects.toThrow('path /mcp');
  });

  it('does not start with options that have errors, and lists them by path', async () => {
    const starting = (options: object) =>
      Test.createTestingModule({ imports: [ParleyModule.forRoot(options)] })
        .compile()
        .then(
          () => null,
          (error: unknown) => error,
        );
    const error = await starting({ server: { portt: 1 }, agents: { a: { permissions: 'god' } } });
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).issues.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['server.portt', 'agents.a.permissions']),
    );
    expect(await starting({ reload: { watch: false } })).toMatchObject({ issues: [{ path: 'reload' }] });
    expect(await starting({ console: { operators: ['a'] } })).toMatchObject({
      issues: [{ path: 'console.operators' }],
    });
    const both = await starting({
      auth: [{ anonymous: true, agent: 'default' }],
      providers: [{ provide: AGENT_FACTORY, useValue: choose }],
    });
    expect(both).toMatchObject({ issues: [{ path: 'auth' }] });
  });
});
