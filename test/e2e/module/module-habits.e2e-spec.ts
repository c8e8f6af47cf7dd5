import 'reflect-metadata';
import {
  Body,
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type INestApplication,
  type LoggerService,
  type NestInterceptor,
  Post,
  Scope,
  type Type,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import compression from 'compression';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Authenticator,
  McpRequest,
  Parley,
  ParleyModule,
  type ParleyModuleOptions,
  Tool,
  type ToolCall,
} from '@parley/server';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { callTool, rpc, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const KEY = { 'X-MCP-API-Key': 'key-of-the-desk' };
const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri },
  policy: POSTS_POLICY,
  agents: { desk: { permissions: 'readonly', tenantId: 'acme' } },
  auth: [{ apiKey: 'key-of-the-desk', agent: 'desk' }],
  server: { drainTimeout: 1, maxBodySize: 4_000_000 },
};

/** What an application keeps for the time of a request, as CLS libraries do. */
const kept = new AsyncLocalStorage<{ readonly trace: string }>();

@Injectable()
class Kept implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return new Observable((subscriber) =>
      kept.run({ trace: 'of the interceptor' }, () => next.handle().subscribe(subscriber)),
    );
  }
}

let goOn: () => void = () => undefined;

@Injectable({ scope: Scope.TRANSIENT })
class Counter {
  value = 0;
}

@Injectable()
class DeskTools {
  constructor(@Inject(Counter) private readonly counter: Counter) {}

  @Tool({
    name: 'length',
    description: 'Of a text.',
    input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  })
  length({ text }: { text: string }) {
    return { length: text.length, text };
  }

  @Tool({ name: 'slow', description: 'Reports progress, and waits for the test.' })
  async slow(_: object, call: ToolCall) {
    call.progress({ progress: 1, message: 'begun' });
    await new Promise<void>((resolve) => (goOn = resolve));
    return { ended: true };
  }

  @UseInterceptors(Kept)
  @Tool({ name: 'kept', description: 'What the application keeps.' })
  keeps() {
    return { trace: kept.getStore()?.trace ?? null };
  }

  @Tool({ name: 'keeps_nothing', description: 'The same without an interceptor.' })
  keepsNothing() {
    return { trace: kept.getStore()?.trace ?? null };
  }

  @Tool({ name: 'counted', description: 'How often it was called.' })
  counted() {
    this.counter.value += 1;
    return { calls: this.counter.value };
  }
}

@Controller('echo')
class EchoController {
  @Post()
  echo(@Body() body: { text: string }) {
    return { length: body.text.length };
  }

  @Get()
  large() {
    return { text: 'tea '.repeat(1_000) };
  }
}

class Lines implements LoggerService {
  readonly lines: string[] = [];
  log = (line: unknown, context: unknown) => void this.lines.push(`${String(context)}: ${String(line)}`);
  warn = this.log;
  error = this.log;
}

const compiled = (tools: Type, options: object = OPTIONS) =>
  Test.createTestingModule({
    imports: [ParleyModule.forRoot(options)],
    providers: [tools, Counter, Kept],
    controllers: [EchoController],
  }).compile();

/** As helmet does, and what a careless neighbour may do besides. */
const headers = (
  _: unknown,
  response: { setHeader(name: string, value: string): void },
  next: () => void,
) => {
  response.setHeader('X-Neighbour', 'was here');
  next();
};

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const)('an application on %s with neighbours', (platform, adapter) => {
  let app: INestApplication;
  let at: { url: string };
  const logger = new Lines();

  beforeAll(async () => {
    app = (await compiled(DeskTools)).createNestApplication(adapter() as never, { logger: false });
    app.useLogger(logger);
    app.use(compression({ threshold: 0 }));
    app.use(headers);
    if (platform === 'Express')
      (app as unknown as { useBodyParser(type: string, setting: object): void }).useBodyParser('json', {
        limit: 100,
      });
    // Without an address, as most applications do.
    await app.listen(0);
    const { port } = new URL(await app.getUrl());
    at = { url: `http://127.0.0.1:${port}/mcp` };
  });
  afterAll(() => app.close());

  it('reads bodies of its own limit, whatever the body parser of the application permits', async () => {
    const text = 'x'.repeat(2_000_000);
    const large = await callTool(at, 'length', { text }, KEY);
    expect(JSON.parse(large.text)).toMatchObject({ length: text.length });
    const limit = 4_000_000;
    expect((await rpc(at, 'tools/list', { text: 'x'.repeat(limit) }, KEY)).status).toBe(413);
    const own = await fetch(new URL('/echo', at.url), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ text: 'y'.repeat(50) }),
    });
    expect(await own.json()).toEqual({ length: 50 });
  });

  it('is compressed and given headers where it is its own, and MCP is left as it is', async () => {
    const own = await fetch(new URL('/echo', at.url), { headers: { 'Accept-Encoding': 'gzip' } });
    expect([own.headers.get('content-encoding'), own.headers.get('x-neighbour')]).toEqual([
      'gzip',
      'was here',
    ]);
    const listed = await rpc(at, 'tools/list', {}, { ...KEY, 'Accept-Encoding': 'gzip' });
    expect([listed.headers.get('content-encoding'), listed.headers.get('x-neighbour')]).toEqual([null, null]);
  });

  it('lets what is streamed through at once, though a compressor stands beside it', async () => {
    const answer = await fetch(at.url, {
      method: 'POST',
      headers: {
        ...KEY,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'Accept-Encoding': 'gzip',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'slow', arguments: {}, _meta: { progressToken: 'p' } },
      }),
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let heard = '';
    // The call waits for its progress to be heard: were it held back, neither would ever come.
    while (!heard.includes('begun')) heard += (await reader.read()).value ?? '';
    expect(heard).not.toContain('ended');
    goOn();
    for (let part = await reader.read(); !part.done; part = await reader.read()) heard += part.value;
    expect(heard).toContain('ended');
  });

  it('finds in tools what its interceptors keep for a call, and nothing of another call', async () => {
    const [one, none] = await Promise.all([
      callTool(at, 'kept', {}, KEY),
      callTool(at, 'keeps_nothing', {}, KEY),
    ]);
    expect(JSON.parse(one.text)).toEqual({ trace: 'of the interceptor' });
    expect(JSON.parse(none.text)).toEqual({ trace: null });
  });

  it('has one tool class with one of each thing it injects, transient ones too', async () => {
    const before = JSON.parse((await callTool(at, 'counted', {}, KEY)).text) as { calls: number };
    const after = JSON.parse((await callTool(at, 'counted', {}, KEY)).text) as { calls: number };
    expect(after.calls).toBe(before.calls + 1);
  });

  it('hears in its own logger what Parley has to say', async () => {
    await rpc(at, 'tools/list', {}, { 'X-MCP-API-Key': 'wrong' });
    expect(logger.lines).toEqual(expect.arrayContaining([expect.stringMatching(/McpEdge.*Unauthorized/)]));
  });
});

describe('an application that listens nowhere', () => {
  it('asks the kernel in process, and tools find what it keeps around the question', async () => {
    const module = await compiled(DeskTools);
    await module.init();
    const parley = module.get(Parley);
    const request = {
      headers: { 'x-mcp-api-key': 'key-of-the-desk' },
      remoteAddress: undefined,
      method: 'POST',
    };
    const agent = await parley.get(Authenticator).authenticate(request);
    const params = { name: 'keeps_nothing', arguments: {} };
    const reply = await kept.run({ trace: 'of the application' }, () =>
      parley.kernel.dispatch(
        'tools/call',
        params,
        new McpRequest(agent, { version: '2025-06-18', signal: new AbortController().signal }),
      ),
    );
    expect(JSON.stringify(reply)).toContain('of the application');
    expect((await parley.readiness()).ready).toBe(true);
    await module.close();
  });
});

@Injectable({ scope: Scope.REQUEST })
class OfTheRequest {}

@Injectable({ scope: Scope.REQUEST, durable: true })
class OfTheTenant {}

@Injectable({ scope: Scope.REQUEST })
class GuardOfTheRequest implements CanActivate {
  canActivate() {
    return true;
  }
}

function toolsWith(needed: Type | null, options: object = {}): Type {
  class Needy {
    @Tool({ name: 'needy', description: 'Never served.' })
    needy() {
      return {};
    }
  }
  Injectable(options)(Needy);
  if (needed) {
    Reflect.defineMetadata('design:paramtypes', [needed], Needy);
  }
  return Needy;
}

@Injectable()
class GuardedTools {
  @UseGuards(GuardOfTheRequest)
  @Tool({ name: 'guarded', description: 'Behind a guard that is made for each request.' })
  guarded() {
    return {};
  }
}

describe('what is made for each request', () => {
  const starting = async (tools: Type, providers: Type[]) => {
    const module = await Test.createTestingModule({
      imports: [ParleyModule.forRoot({})],
      providers: [tools, ...providers],
    }).compile();
    try {
      await module.init();
    } finally {
      await module.close();
    }
  };

  it.each([
    ['a tool class', () => starting(toolsWith(null, { scope: Scope.REQUEST }), []), 'Needy'],
    [
      'a durable tool class',
      () => starting(toolsWith(null, { scope: Scope.REQUEST, durable: true }), []),
      'Needy',
    ],
    ['a transient tool class', () => starting(toolsWith(null, { scope: Scope.TRANSIENT }), []), 'Needy'],
    ['what a tool class injects', () => starting(toolsWith(OfTheRequest), [OfTheRequest]), 'Needy'],
    ['what is durable and injected', () => starting(toolsWith(OfTheTenant), [OfTheTenant]), 'Needy'],
    ['a guard of a tool', () => starting(GuardedTools, []), 'GuardOfTheRequest on tools'],
  ])('cannot be %s: the start ends and says which', async (_, start, named) => {
    await expect(start()).rejects.toThrow(new RegExp(`^${named}.* is made .*for each request`));
  });
});
