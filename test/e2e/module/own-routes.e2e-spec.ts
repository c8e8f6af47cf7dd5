import 'reflect-metadata';
import {
  Body,
  Controller,
  ForbiddenException,
  Get,
  Header,
  type INestApplication,
  Injectable,
  Next,
  NotFoundException,
  Param,
  Post,
  Sse,
  StreamableFile,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { connect } from 'node:net';
import { NEVER } from 'rxjs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Agent,
  type AuditEvent,
  type AuditRecord,
  AuditSink,
  CurrentAgent,
  CurrentCall,
  ParleyGuard,
  ParleyModule,
  type ParleyModuleOptions,
  RequirePermission,
  type RowWritingCall,
  Tool,
  type ToolCall,
  UsesClass,
} from '@parley/server';
import { POSTS_POLICY, POSTS_SEED, SECRET } from '../../fixtures/posts.fixture.js';
import { callTool, startDatabase } from '../../support/service.js';

/** Beside the posts a class that users may read and not change. */
const TICKET = {
  className: 'Ticket',
  fields: { seat: { type: 'String' } },
  classLevelPermissions: {
    find: { '*': true },
    get: { '*': true },
    count: { '*': true },
    create: {},
    update: {},
    delete: {},
  },
};
const posts = await startDatabase({ ...POSTS_SEED, schemas: [...POSTS_SEED.schemas, TICKET] });

const TIERS = ['readonly', 'write', 'admin'] as const;

const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri },
  policy: POSTS_POLICY,
  agents: {
    readonly: { permissions: 'readonly', tenantId: 'acme' },
    write: { permissions: 'write', tenantId: 'acme' },
    admin: { permissions: 'admin', tenantId: 'acme' },
    listed: { permissions: 'write', tenantId: 'acme', tools: { only: ['count_objects'] } },
    user: { permissions: 'write', identity: { user: 'u1' }, tenantId: 'acme' },
    narrow: { permissions: 'write', tenantId: 'acme', classes: { only: ['Author'] } },
    stray: { permissions: 'write' },
    busy: { permissions: 'readonly', tenantId: 'acme', rateLimit: 1 },
  },
  gates: {
    PARSE_AGENT_ALLOW_WRITE_TOOLS: true,
    PARSE_AGENT_ALLOW_SCHEMA_OPS: false,
    PARSE_AGENT_ALLOW_RAW_CRUD: false,
    PARSE_AGENT_ALLOW_RAW_SCHEMA: false,
  },
  auth: ['readonly', 'write', 'admin', 'listed', 'user', 'narrow', 'stray', 'busy'].map((agent) => ({
    apiKey: `key-of-${agent}`,
    agent,
  })),
};
const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}` });

/** A guard of the application behind Parley's. */
@Injectable()
class ClosedGuard {
  canActivate(): boolean {
    throw new ForbiddenException('closed on Sundays');
  }
}

@Controller('posts')
@UseGuards(ParleyGuard)
@RequirePermission('readonly')
class PostsController {
  @Get()
  async live(@CurrentCall() { records }: ToolCall) {
    return { live: await records.count('Post', { where: { status: 'live' } }) };
  }

  @Get('mine')
  whoAmI(@CurrentAgent() { definition, tenantId }: Agent) {
    return { agent: definition.name, tenantId };
  }

  @Get('contracts')
  contracts(@CurrentCall() { records }: ToolCall) {
    return records.find('Contract');
  }

  @Get('file')
  @Header('Content-Type', 'text/plain')
  file() {
    return new StreamableFile(Buffer.from('a file'));
  }

  @Get('gone')
  gone() {
    throw new NotFoundException('no such page');
  }

  @Get('broken')
  broken() {
    throw new Error(SECRET);
  }

  @Get('slow')
  @RequirePermission('readonly', { timeout: 1 })
  slow(@CurrentCall() { signal }: ToolCall) {
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(SECRET)));
  }

  @Get('closed')
  @UseGuards(ClosedGuard)
  closed() {
    return SECRET;
  }

  @Get('one/:id')
  one(@CurrentCall() { records }: ToolCall, @Param('id') id: string) {
    return records.get('Empty', id);
  }

  @Post()
  @RequirePermission('write')
  write(@Body() body: object) {
    return { body };
  }

  @Post('purge')
  @RequirePermission('admin')
  purge() {
    return { purged: true };
  }
}

let sold = 0;

@Controller('tickets')
@UseGuards(ParleyGuard)
@RequirePermission('write')
class TicketsController {
  @Get()
  @UsesClass('Ticket')
  list() {
    return { listed: true };
  }

  @Post()
  @UsesClass('Ticket', 'create')
  async sell(@CurrentCall() { writes }: RowWritingCall) {
    sold += 1;
    return { seat: (await writes.create('Ticket', { seat: 'A1' }))['seat'] };
  }

  @Get('contracts')
  @UsesClass('Contract')
  contracts() {
    return SECRET;
  }

  @Get('posts')
  @UsesClass('Post', 'count', 'get')
  posts() {
    return { counted: true };
  }
}

@Injectable()
class PostTools {
  @Tool({ name: 'write', description: 'As the route.', permission: 'write' })
  write() {
    return {};
  }
}

const entries: (AuditRecord | AuditEvent)[] = [];
class Listening extends AuditSink {
  record(entry: AuditRecord) {
    entries.push(entry);
  }
  override recordEvent(event: AuditEvent) {
    entries.push(event);
  }
}

async function started(
  adapter: object,
  controllers: readonly Type[],
  options = OPTIONS,
): Promise<INestApplication> {
  const builder = Test.createTestingModule({
    imports: [ParleyModule.forRoot({ ...options, providers: [{ provide: AuditSink, useClass: Listening }] })],
    controllers: [...controllers],
    providers: [PostTools],
  });
  const app = (await builder.compile()).createNestApplication(adapter as never, { logger: false });
  await app.listen(0, '127.0.0.1');
  return app;
}

@Controller('doors')
@UseGuards(ParleyGuard)
class DoorsController {
  @Get('inner')
  @RequirePermission('readonly')
  outer(@Next() next: () => void) {
    next();
  }

  @Get('inner')
  @RequirePermission('admin')
  inner() {
    return { open: true };
  }
}

describe('a route that passes a request on', () => {
  let app: INestApplication;
  beforeAll(async () => (app = await started(new ExpressAdapter(), [DoorsController])));
  afterAll(() => app.close());

  it.each([
    ['readonly', 403],
    ['admin', 200],
  ])('admits nobody to the route behind it: %s gets %d', async (agent, status) => {
    const answer = await fetch(`${await app.getUrl()}/doors/inner`, { headers: as(agent) });
    expect(answer.status).toBe(status);
  });
});

const adapters = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const;

describe.each(adapters)('a controller of the application with ParleyGuard, on %s', (_, adapter) => {
  let app: INestApplication;
  let origin: string;
  beforeAll(async () => {
    app = await started(adapter(), [PostsController, TicketsController]);
    origin = await app.getUrl();
  });
  afterAll(() => app.close());
  beforeEach(() => void (entries.length = 0));

  const ask = async (path: string, headers: Record<string, string>, method = 'GET') => {
    const answer = await fetch(`${origin}${path}`, {
      method,
      headers: { ...headers, ...(method === 'POST' && { 'Content-Type': 'application/json' }) },
      ...(method === 'POST' && { body: '{"title":"x"}' }),
    });
    const text = await answer.text();
    expect(text).not.toContain(SECRET);
    return { status: answer.status, text, headers: answer.headers, json: () => JSON.parse(text) as unknown };
  };

  /** Which permissions each route asks for, and each agent has. */
  const ROUTES = [
    ['GET', '/posts/mine', 'readonly', 200],
    ['POST', '/posts', 'write', 201],
    ['POST', '/posts/purge', 'admin', 201],
  ] as const;

  it.each(ROUTES)(
    'admits to %s %s who has the permission %s, and nobody else',
    async (method, path, tier, status) => {
      for (const agent of TIERS) {
        const answer = await ask(path, as(agent), method);
        const permitted = TIERS.indexOf(agent) >= TIERS.indexOf(tier);
        expect({ agent, status: answer.status }).toEqual({ agent, status: permitted ? status : 403 });
        if (!permitted) expect(answer.json()).toMatchObject({ error_code: 'permission_denied' });
      }
    },
  );

  it('refuses in the words in which a tool of the same permission refuses', async () => {
    const route = (await ask('/posts', as('readonly'), 'POST')).json() as { error: string };
    const tool = await callTool({ url: `${origin}/mcp` }, 'write', {}, as('readonly'));
    expect(route.error.replace('route:PostsController.write', 'write')).toBe(tool.text);
    expect(route).toEqual({ error: route.error, error_code: 'permission_denied' });
  });

  it('answers 401 to a caller without a key of the instance, or with another one', async () => {
    for (const headers of [{}, { 'X-MCP-API-Key': 'wrong' }]) {
      const answer = await ask('/posts/mine', headers as Record<string, string>);
      expect(answer.status).toBe(401);
      expect(answer.json()).toEqual({ error: 'Unauthorized: invalid or missing API key' });
    }
    expect(entries).toMatchObject([{ type: 'authentication', success: false }]);
  });

  it('keeps an agent with a list of tools out of every route that the list leaves out', async () => {
    expect((await ask('/posts/mine', as('listed'))).json()).toMatchObject({ error_code: 'tool_filtered' });
  });

  it('counts a request as a call of its agent, and says when the next one may come', async () => {
    expect((await ask('/posts/mine', as('busy'))).status).toBe(200);
    const refused = await ask('/posts/mine', as('busy'));
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.json()).toMatchObject({
      error_code: 'rate_limited',
      retry_after: expect.any(Number) as number,
    });
    const tool = await callTool(
      { url: `${origin}/mcp` },
      'count_objects',
      { class_name: 'Post' },
      as('busy'),
    );
    expect(tool).toMatchObject({ isError: true, code: 'rate_limited' });
  });

  it('shows the route who calls, and the rows that the agent may read', async () => {
    expect((await ask('/posts/mine', as('write'))).json()).toEqual({ agent: 'write', tenantId: 'acme' });
    const { live } = (await ask('/posts', as('readonly'))).json() as { live: number };
    const tool = await callTool(
      { url: `${origin}/mcp` },
      'count_objects',
      { class_name: 'Post', where: { status: 'live' } },
      as('readonly'),
    );
    expect(JSON.parse(tool.text)).toMatchObject({ count: live });
  });

  /** What the gates of a class decide for a route that uses it: the status, and who refused. */
  const CLASS_CASES = [
    ['an agent with the master key reads', 'write', 'GET', '/tickets', 200, undefined],
    ['a user reads what the class permits', 'user', 'GET', '/tickets', 200, undefined],
    ['an agent with the master key creates', 'write', 'POST', '/tickets', 201, undefined],
    ['a user creates nothing without the permission', 'user', 'POST', '/tickets', 403, 'class_permissions'],
    ['an agent of other classes reads nothing', 'narrow', 'GET', '/tickets', 403, 'class'],
    ['an agent of other classes creates nothing', 'narrow', 'POST', '/tickets', 403, 'class'],
    ['nobody uses a hidden class', 'write', 'GET', '/tickets/contracts', 403, 'class'],
    ['an agent of a tenant reads', 'write', 'GET', '/tickets/posts', 200, undefined],
    ['an agent without a tenant reads nothing of tenants', 'stray', 'GET', '/tickets/posts', 403, 'tenant'],
  ] as const;

  it.each(CLASS_CASES)(
    'asks the gates of the classes: %s',
    async (_rule, agent, method, path, status, gate) => {
      const before = sold;
      const answer = await ask(path, as(agent), method);
      expect({ status: answer.status, text: answer.text }).toMatchObject({ status });
      expect(entries).toMatchObject([{ success: gate === undefined, ...(gate !== undefined && { gate }) }]);
      expect(entries[0]).toHaveProperty('class_name');
      if (gate !== undefined) expect(sold).toBe(before);
    },
  );

  it('answers a refusal of the governed data with its status and nothing internal', async () => {
    const hidden = await ask('/posts/contracts', as('admin'));
    expect({ status: hidden.status, body: hidden.json() }).toMatchObject({
      status: 403,
      body: { error_code: 'access_denied' },
    });
    expect((await ask('/posts/one/nothing', as('admin'))).status).toBe(404);
  });

  it('leaves errors of the application to its own filters', async () => {
    const gone = await ask('/posts/gone', as('readonly'));
    expect(gone.status).toBe(404);
    expect(gone.json()).toMatchObject({ message: 'no such page' });
    expect((await ask('/posts/broken', as('readonly'))).status).toBe(500);
    expect(entries).toMatchObject([{ success: false }, { success: false, error_code: 'internal_error' }]);
  });

  it('ends a route at its time-out, with the signal of its call', async () => {
    const answer = await ask('/posts/slow', as('readonly'));
    expect({ status: answer.status, body: answer.json() }).toMatchObject({
      status: 504,
      body: { error_code: 'timeout' },
    });
  });

  it('ends a call with its connection, also one whose answer waits behind another', async () => {
    const { port, hostname } = new URL(origin);
    const socket = connect({ port: Number(port), host: hostname });
    const request = `GET /posts/slow HTTP/1.1\r\nHost: localhost\r\nX-MCP-API-Key: key-of-readonly\r\n\r\n`;
    socket.write(request.repeat(3));
    await new Promise((resolve) => setTimeout(resolve, 300));
    socket.destroy();
    const listCodes = () => entries.map((entry) => 'tool' in entry && [entry.tool, entry.error_code]);
    await expect.poll(() => entries.length).toBe(3);
    expect(listCodes()).toEqual(Array(3).fill(['route:PostsController.slow', 'cancelled']));
  });

  it('sends files as the application does', async () => {
    expect((await ask('/posts/file', as('readonly'))).text).toBe('a file');
  });

  it('records each call and each refusal once, under the name of the route', async () => {
    await ask('/posts', as('write'), 'POST');
    await ask('/posts', as('readonly'), 'POST');
    await ask('/posts/closed', as('readonly'));
    await expect.poll(() => entries.length).toBe(3);
    expect(entries).toMatchObject([
      {
        tool: 'route:PostsController.write',
        success: true,
        args_keys: ['request', 'body'],
        agent_name: 'write',
      },
      { tool: 'route:PostsController.write', success: false, gate: 'tier', agent_name: 'readonly' },
      { tool: 'route:PostsController.closed', success: false, gate: 'application' },
    ]);
  });
});

describe('the start of an application', () => {
  @Controller('open')
  class Undeclared {
    @Get()
    @UseGuards(ParleyGuard)
    open() {
      return SECRET;
    }
  }

  @Controller('open')
  class Unguarded {
    @Get()
    @RequirePermission('admin')
    open() {
      return SECRET;
    }
  }

  @Controller('open')
  @UseGuards(ParleyGuard)
  class OfAnotherInstance {
    @Get()
    @RequirePermission('admin', { instance: 'billing' })
    open() {
      return SECRET;
    }
  }

  @Controller('open')
  @UseGuards(ParleyGuard)
  class Endless {
    @Sse()
    @RequirePermission('admin')
    open() {
      return NEVER;
    }
  }

  @Controller('open')
  @UseGuards(ParleyGuard)
  @RequirePermission('readonly')
  class WritingReader {
    @Get()
    @UsesClass('Post', 'update')
    open() {
      return SECRET;
    }
  }

  it.each([
    [
      'a write that the permission does not cover',
      WritingReader,
      /WritingReader\.open: .*@RequirePermission\("write"\)/,
    ],
    [
      'a guarded route that requires no permission',
      Undeclared,
      /Undeclared\.open: .*write @RequirePermission/,
    ],
    ['a permission without the guard', Unguarded, /Unguarded\.open: .*write @UseGuards\(ParleyGuard\)/],
    ['an instance that does not exist', OfAnotherInstance, /OfAnotherInstance\.open: .*'billing'/],
    ['a route of events', Endless, /Endless\.open: .*@Sse/],
  ])('ends with an error for %s', async (_, controller, message) => {
    await expect(started(new ExpressAdapter(), [controller])).rejects.toThrow(message);
  });

  it('ends with an error for two controllers whose routes have one name in lists of tools', async () => {
    const ofVersion = (version: string): Type => {
      @Controller(`${version}/orders`)
      @UseGuards(ParleyGuard)
      @RequirePermission('readonly')
      class Orders {
        @Get()
        list() {
          return [];
        }
      }
      return Orders;
    };
    await expect(started(new ExpressAdapter(), [ofVersion('v1'), ofVersion('v2')])).rejects.toThrow(
      /Orders\.list: another controller of this name/,
    );
  });
});
