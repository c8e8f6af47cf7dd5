import {
  All,
  Body,
  Controller,
  Get,
  HttpCode,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestMiddleware,
  Param,
  Post,
  Query,
  UseInterceptors,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ArrayMaxSize, IsIn, IsOptional, IsString } from 'class-validator';
import fc from 'fast-check';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NodeHttpAdapter } from './node-http-adapter.js';
import { JsonBodyInterceptor, NotServed, RefusalFilter, createValidationPipe } from './routes.js';

class Choice {
  @IsIn(['this', 'that'], { message: 'choice must be this or that' })
  choice!: string;

  @IsOptional()
  more?: unknown;
}

class Search {
  @IsString()
  limit = '50';

  @ArrayMaxSize(20)
  names: string[] = [];
}

@Controller('things')
class ThingsController {
  @Get()
  list(@Query() query: object): object {
    return { query };
  }

  @Get('search')
  search(@Query(createValidationPipe(Search)) { limit, names }: Search): object {
    return { limit, names };
  }

  @Get('first')
  first(): object {
    return { first: true };
  }

  @Get(':id')
  show(@Param('id') id: string): object {
    return { id };
  }

  @Post('choice')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  choose(@Body(createValidationPipe(Choice)) { choice }: Choice): object {
    return { choice };
  }

  @Post('unsendable')
  refuse(): never {
    throw new NotServed(401, 'Unauthorized', { 'WWW-Authenticate': 'a\nb' });
  }

  @Post(':id')
  @HttpCode(200)
  change(): never {
    throw new Error('a secret of the service');
  }
}

@Controller('guarded')
class GuardedController {
  @Get('page')
  page(): object {
    return {};
  }

  @All('*rest')
  others(@Param('rest') rest: string | undefined): object {
    return { rest: rest ?? null };
  }
}

@Injectable()
class Marking implements NestMiddleware {
  use(_request: IncomingMessage, response: ServerResponse, next: () => void): void {
    response.setHeader('X-Marked', 'yes');
    next();
  }
}

@Module({ controllers: [ThingsController, GuardedController] })
class TestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(Marking).forRoutes('guarded/*rest');
  }
}

describe('the routes of controllers on plain requests', () => {
  const adapter = new NodeHttpAdapter();
  const logged: string[] = [];
  let server: Server;
  let origin: string;
  beforeAll(async () => {
    const app = await NestFactory.create(TestModule, adapter, { bodyParser: false, logger: ['error'] });
    app.useGlobalFilters(new RefusalFilter((error, path) => logged.push(`${path}: ${String(error)}`)));
    await app.init();
    server = createServer((request, response) => {
      void adapter.handle(request, response, (request.url ?? '').split('?')[0] ?? '');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const sendRequest = async (path: string, method = 'GET', json?: string) => {
    const sent = json !== undefined && { body: json, headers: { 'Content-Type': 'application/json' } };
    const response = await fetch(`${origin}${path}`, { method, ...sent });
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? null : (JSON.parse(text) as unknown),
      headers: response.headers,
    };
  };

  it('take the first route that was declared for a path', async () => {
    expect(await sendRequest('/things/first')).toMatchObject({ status: 200, body: { first: true } });
    expect(await sendRequest('/things/second')).toMatchObject({ status: 200, body: { id: 'second' } });
  });

  it('name the methods of a path that has others, and refuse any other path', async () => {
    const refused = await sendRequest('/things/one', 'DELETE');
    expect(refused).toMatchObject({ status: 405, body: { error: 'Method Not Allowed' } });
    expect(refused.headers.get('allow')).toBe('GET, HEAD, POST');
    for (const path of ['/', '/thing', '/things/', '/things/a/b', '/things/a%20b', '/THINGS'])
      expect([path, await sendRequest(path)]).toMatchObject([
        path,
        { status: 404, body: { error: 'Not Found' } },
      ]);
  });

  it('answer HEAD like GET, without a body', async () => {
    const { status, body, headers } = await sendRequest('/things/first', 'HEAD');
    expect([status, body, headers.get('content-length')]).toEqual([200, null, '14']);
  });

  it('take the values of a repeated parameter as a list, whatever its name', async () => {
    const { body } = await sendRequest('/things?a=1&a=2&__proto__=3');
    expect(JSON.stringify(body)).toBe('{"query":{"a":["1","2"],"__proto__":"3"}}');
  });

  it('refuse a repeated parameter that is no list, and name it', async () => {
    expect(await sendRequest('/things/search?names=a&names=b')).toMatchObject({
      status: 200,
      body: { names: ['a', 'b'] },
    });
    expect(await sendRequest('/things/search?limit=1&limit=2&names=a')).toMatchObject({
      status: 400,
      body: { error: 'limit is given more than once' },
    });
  });

  it('pass all other paths and methods to a route for the rest, after the middleware', async () => {
    expect(await sendRequest('/guarded/a/b', 'DELETE')).toMatchObject({ status: 200, body: { rest: 'a/b' } });
    expect(await sendRequest('/guarded')).toMatchObject({ status: 200, body: { rest: null } });
    expect((await sendRequest('/guarded/page')).headers.get('x-marked')).toBe('yes');
    expect((await sendRequest('/things')).headers.get('x-marked')).toBeNull();
  });

  it('show an error in the log alone', async () => {
    expect(await sendRequest('/things/one', 'POST')).toMatchObject({
      status: 500,
      body: { error: 'Internal error' },
    });
    expect(logged.splice(0)).toEqual(['/things/one: Error: a secret of the service']);
  });

  it('refuse a body with a number that its readers round, or with a member twice', async () => {
    const choose = async (body: string) => sendRequest('/things/choice', 'POST', body);
    expect(await choose('{"choice":"this","more":[9007199254740993]}')).toMatchObject({
      status: 400,
      body: {
        error: expect.stringMatching(/^body: more\[0\] is 9007199254740993.* write it as text/) as string,
      },
    });
    expect(await choose('{"choice":"that","ch\\u006fice":"this"}')).toMatchObject({
      status: 400,
      body: { error: 'body: an object has a member twice' },
    });
    expect(await choose('\u{feff}{"choice":"this"}')).toMatchObject({ status: 200 });
    expect(logged).toEqual([]);
  });

  it('refuse a member and a parameter that the class does not have', async () => {
    const refusals = [
      await sendRequest('/things/choice', 'POST', '{"choice":"this","chioce":"that"}'),
      await sendRequest('/things/choice', 'POST', '{"choice":"this","__proto__":{}}'),
      await sendRequest('/things/search?limit=5&limt=2'),
    ];
    expect(refusals.map(({ status, body }) => [status, body])).toEqual([
      [400, { error: "unknown member 'chioce', known: choice, more" }],
      [400, { error: "unknown member '__proto__', known: choice, more" }],
      [400, { error: "unknown parameter 'limt', known: limit, names" }],
    ]);
  });

  it('refuse a body that is nested too deeply, wherever it is, without an error', async () => {
    const choose = async (more: string) => {
      const { status, body } = await sendRequest(
        '/things/choice',
        'POST',
        `{"choice":"this","more":${more}}`,
      );
      return [status, body];
    };
    const lists = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    const objects = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    for (const nested of [lists, objects]) {
      expect(await choose(nested(400))).toEqual([200, { choice: 'this' }]);
      for (const depth of [600, 2700])
        expect(await choose(nested(depth))).toEqual([400, { error: 'body nested too deeply' }]);
    }
    expect(await choose(lists(8100))).toEqual([400, { error: 'body nested too deeply' }]);
    expect(logged).toEqual([]);
  });

  it('answer with an error when a refusal has a header that cannot be sent', async () => {
    const { status, headers } = await sendRequest('/things/unsendable', 'POST');
    expect([status, headers.get('www-authenticate')]).toEqual([500, null]);
    expect(logged.pop()).toContain('Invalid character in header');
  });

  it('never fail for a path, whatever it is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary-ascii' }), async (text) => {
        const path = `/things/${encodeURI(text.replace(/[?#\\]/g, ''))}`;
        expect([200, 404]).toContain((await sendRequest(path)).status);
      }),
      { numRuns: 100 },
    );
  });
});
