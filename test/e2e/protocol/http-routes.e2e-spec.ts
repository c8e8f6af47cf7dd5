import 'reflect-metadata';
import type { INestApplication } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getParleyToken, type Parley, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import {
  answersTo,
  consoleRequests,
  documentRequests,
  instanceRequests,
  startPageRequests,
} from '../../support/http-requests.js';
import { type Database, type Service, startDatabase, startService } from '../../support/service.js';

const free = { rateLimit: 1_000_000, tenantId: 'acme' };
const AGENTS = {
  reader: { ...free, permissions: 'readonly' },
  chief: { ...free, permissions: 'readonly' },
} as const;
const OPTIONS = {
  policy: { ...POSTS_POLICY, requireApprovalFor: ['write'] },
  agents: AGENTS,
  approvals: { mode: 'desk', approvers: ['chief'] },
  auth: [
    { apiKey: 'key-of-reader', agent: 'reader' },
    { apiKey: 'key-of-chief', agent: 'chief' },
    { agent: 'reader', oauth: { issuer: 'http://127.0.0.1:1/issuer', audience: 'http://127.0.0.1/mcp' } },
  ],
};
const server = { allowedOrigins: ['https://here.example'], requestRateLimit: null };

const golden = (name: string) => `../../fixtures/http-answers/${name}.txt`;
let database: Database;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
});

describe('the routes of the service', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({
      config: {
        ...OPTIONS,
        server,
        database: { uri: database.uri, name: 'parley' },
        console: { operators: ['chief'] },
      },
    });
  });
  afterAll(() => service.stop());

  it('answer every request as they always did', async () => {
    const endings = ['', '/', '/mcp', '/mcp/', '/other'];
    const requests = [...instanceRequests(''), ...documentRequests(endings)];
    await expect(await answersTo(service.origin, requests)).toMatchFileSnapshot(golden('service'));
  });

  it('at the root say what is served, to browsers and to programs', async () => {
    await expect(await answersTo(service.origin, startPageRequests())).toMatchFileSnapshot(
      golden('start-page'),
    );
  });

  it('of the console answer every request as they always did', async () => {
    await expect(await answersTo(service.origin, consoleRequests())).toMatchFileSnapshot(golden('console'));
  });
});

const refuse = () => {
  throw new Error('an enhancer of the application ran');
};
/** Whatever the application does to its own requests. */
const OF_THE_APPLICATION = [
  { provide: APP_GUARD, useValue: { canActivate: refuse } },
  { provide: APP_PIPE, useValue: { transform: refuse } },
  { provide: APP_INTERCEPTOR, useValue: { intercept: refuse } },
  { provide: APP_FILTER, useValue: { catch: refuse } },
];

async function applicationOn(adapter: unknown): Promise<INestApplication> {
  const options = {
    ...OPTIONS,
    server,
    database: { uri: database.uri, name: 'parley' },
    endpoints: { health: true },
    environment: { PARSE_MCP_ENABLED: 'true' },
  } as unknown as ParleyModuleOptions;
  const compiled = await Test.createTestingModule({
    imports: [ParleyModule.forRoot(options)],
    providers: OF_THE_APPLICATION,
  }).compile();
  const app = compiled.createNestApplication(adapter as never, { logger: false });
  await app.listen(0, '127.0.0.1');
  return app;
}

describe.each([
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
])('the routes inside an application on %s', (_, adapter) => {
  let app: INestApplication;
  beforeAll(async () => {
    app = await applicationOn(adapter());
  });
  afterAll(() => app.close());

  it('answer every request alike, whatever the application does to its own', async () => {
    const requests = [...instanceRequests('/mcp'), ...documentRequests(['/mcp', '/mcp/'])];
    await expect(await answersTo(await app.getUrl(), requests)).toMatchFileSnapshot(golden('application'));
  });

  it('answer like those of the service at a port of their own', async () => {
    const listener = await app.get<Parley>(getParleyToken('default')).listen({ standalone: true, port: 0 });
    const endings = ['', '/', '/mcp', '/mcp/', '/other'];
    const requests = [...instanceRequests(''), ...documentRequests(endings)];
    const answers = await answersTo(new URL(listener.url).origin, requests);
    await listener.close();
    await expect(answers).toMatchFileSnapshot(golden('service'));
  });
});

describe.each(['/status', '/health/live', '/tools/alive'])('another path of health, %s', (healthPath) => {
  let service: Service;
  beforeAll(async () => (service = await startService({ config: { server: { healthPath } } })));
  afterAll(() => service.stop());

  it('answers what /health does, also below another route', async () => {
    for (const path of [healthPath, '/health']) {
      const answer = await fetch(`${service.origin}${path}`);
      expect([path, answer.status, await answer.json()]).toEqual([
        path,
        200,
        { status: 'ok', mcp_enabled: true },
      ]);
    }
    expect((await fetch(`${service.origin}${healthPath}/below`)).status).toBe(404);
  });
});
