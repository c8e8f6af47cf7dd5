import 'reflect-metadata';
import { Controller, Get, type INestApplication, UseGuards } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  CurrentCall,
  McpRequest,
  Parley,
  ParleyGuard,
  ParleyModule,
  type ParleyModuleOptions,
  RequirePermission,
  type ToolCall,
} from '@parley/server';
import { openAi, startModelServer } from '../../../libs/chat/src/contracts/model-server.js';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, startDatabase } from '../../support/service.js';

const posts = await startDatabase(POSTS_SEED);

const SAID = "agent 'analyst' is suspended";
const POSTS = { class_name: 'Post' };
const as = (agent: string) => ({ 'X-MCP-API-Key': `key-of-${agent}-0000` });
const SUSPENDED = { ok: false, refusal: { code: 'access_denied', gate: 'suspension', message: SAID } };

@Controller('posts')
@UseGuards(ParleyGuard)
@RequirePermission('readonly')
class PostsController {
  @Get()
  async live(@CurrentCall() { records }: ToolCall) {
    return { live: await records.count('Post') };
  }
}

const free = { permissions: 'readonly', tenantId: 'acme', rateLimit: 1_000_000 } as const;
const OPTIONS: ParleyModuleOptions = {
  database: { uri: posts.uri, name: 'parley' },
  policy: POSTS_POLICY,
  agents: { chief: free, analyst: free, helper: free },
  auth: ['chief', 'analyst', 'helper'].map((agent) => ({ apiKey: `key-of-${agent}-0000`, agent })),
  console: { operators: ['chief'] },
  server: { drainTimeout: 1 },
};

let app: INestApplication;
let origin: string;
let parley: Parley;

beforeAll(async () => {
  const compiled = await Test.createTestingModule({
    imports: [
      ParleyModule.forRoot(OPTIONS),
      ParleyModule.forRoot({
        ...OPTIONS,
        name: 'other',
        server: { path: '/other', drainTimeout: 1 },
        console: {},
      }),
    ],
    controllers: [PostsController],
  }).compile();
  app = compiled.createNestApplication(new ExpressAdapter(), { logger: false });
  await app.listen(0, '127.0.0.1');
  origin = (await app.getUrl()).replace('[::1]', '127.0.0.1');
  parley = app.get(Parley);
});
afterAll(() => app?.close());

const change = async (action: 'suspend' | 'resume', agent: string) => {
  const { status } = await fetch(`${origin}/mcp/console/api/suspensions/${agent}`, {
    method: 'POST',
    headers: { ...as('chief'), 'Content-Type': 'application/json', 'X-Parley-Console': '1' },
    body: JSON.stringify({ action, reason: 'gone wild' }),
  });
  expect(status).toBe(200);
};
afterEach(() => Promise.all(['analyst', 'helper'].map((agent) => change('resume', agent))));

const agent = (name = 'analyst') => parley.agentFor({ agent: name, principal: 'nightly' });
const count = (request: McpRequest) => parley.runner.run('count_objects', POSTS, request);
const message = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });

describe('the code of an application, as a suspended agent', () => {
  it('calls no tool, also through an agent that it made before', async () => {
    const kept = agent();
    const child = await parley.subAgents.create(kept, { name: 'reader' });
    const grandchild = await parley.subAgents.create(child, { name: 'helper' });
    const all = [kept, child, grandchild].map((one) => new McpRequest(one));
    for (const request of all) expect(await count(request)).toMatchObject({ ok: true });
    await change('suspend', 'analyst');
    for (const request of [...all, new McpRequest(agent())])
      expect(await count(request)).toMatchObject(SUSPENDED);
    expect(await count(new McpRequest(agent('helper')))).toMatchObject({ ok: true });
    await change('resume', 'analyst');
    for (const request of all) expect(await count(request)).toMatchObject({ ok: true });
  });

  it('calls no tool as a sub-agent of that name alone, while the agent that made it goes on', async () => {
    const kept = agent();
    const child = new McpRequest(await parley.subAgents.create(kept, { name: 'helper' }));
    await change('suspend', 'helper');
    expect(await count(child)).toMatchObject({ ok: false, refusal: { gate: 'suspension' } });
    expect(await count(new McpRequest(kept))).toMatchObject({ ok: true });
  });

  it('gets no answer to a message of MCP', async () => {
    await change('suspend', 'analyst');
    const called = await parley.handle(
      message('tools/call', { name: 'count_objects', arguments: POSTS }),
      agent(),
    );
    expect(JSON.stringify(called.body)).toContain(SAID);
    expect(called.body).toMatchObject({ result: { isError: true } });
    for (const [method, params] of [
      ['tools/list', {}],
      ['resources/list', {}],
      ['resources/templates/list', {}],
      ['resources/read', { uri: 'parse://Post/count' }],
      ['prompts/list', {}],
      [
        'completion/complete',
        { ref: { type: 'ref/resource', uri: 'x' }, argument: { name: 'x', value: '' } },
      ],
    ] as const) {
      const { body } = await parley.handle(message(method, params), agent());
      expect([method, body]).toEqual([
        method,
        { jsonrpc: '2.0', id: 1, error: { code: -32_001, message: SAID } },
      ]);
    }
  });

  it('is told the refusal in a conversation, which began before', async () => {
    const model = await startModelServer();
    try {
      const talk = parley.converse(agent(), {
        model: { provider: 'lmstudio', endpoint: `${model.url}/v1` },
      });
      model.script(openAi.says('Hello.'), openAi.calls([{ name: 'count_objects', args: POSTS }]));
      await talk.ask('Hello?');
      await change('suspend', 'analyst');
      model.script(openAi.says('I may not.'));
      const ended = await talk.ask('How many posts?').then(
        ({ text }) => text,
        (error: unknown) => String(error),
      );
      expect(ended + JSON.stringify(model.requests.at(-1))).toContain(SAID);
    } finally {
      await model.stop();
    }
  });
});

describe('a suspended agent', () => {
  it('is refused by guarded routes of the application', async () => {
    const read = () => fetch(`${origin}/posts`, { headers: as('analyst') });
    expect((await read()).status).toBe(200);
    await change('suspend', 'analyst');
    const refused = await read();
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining(SAID)]);
    expect((await fetch(`${origin}/posts`, { headers: as('helper') })).status).toBe(200);
  });

  it('is none of another instance with the same name', async () => {
    await change('suspend', 'analyst');
    const asked = (path: string) => callTool({ url: origin + path }, 'count_objects', POSTS, as('analyst'));
    expect(await asked('/other')).toMatchObject({ isError: false, data: { count: expect.any(Number) } });
    expect(await asked('/mcp')).toMatchObject({ rpcError: { message: SAID } });
  });
});
