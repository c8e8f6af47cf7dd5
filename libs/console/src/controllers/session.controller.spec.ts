import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiKeyRule, hashPlainKey, RuleAuthenticator } from '#auth';
import { compileAgentDefinition, MASTER, ProcessRateLimiters } from '#core';
import { processSecret } from '#dispatcher';
import { ProcessMessageBus, processState, ProcessVersionedStore, steadyClock, SuspendedAgents } from '#state';
import { McpEdge, NodeHttpAdapter } from '#streaming';
import { OperatorGate, OperatorNotes } from '../operator-gate.js';
import { OidcSignIn } from '../oidc-sign-in.js';
import { OperatorSessions } from '../operator-sessions.js';
import { SignIn } from '../sign-in.js';
import { SessionController } from './session.controller.js';

/** Ended sessions that are remembered for one principal. */
const SHARE = 2;

function signIn() {
  const state = {
    bus: new ProcessMessageBus(),
    clock: steadyClock,
    limiters: new ProcessRateLimiters(),
    revocations: new ProcessVersionedStore(),
    endedSessions: new ProcessVersionedStore(undefined, undefined, undefined, { entries: SHARE }),
  };
  const rights = { operators: () => ['chief'], approvers: [], isCurrent: () => true };
  const authenticator = new RuleAuthenticator([
    new ApiKeyRule(hashPlainKey('key-of-chief'), compileAgentDefinition('chief'), MASTER),
  ]);
  const sessions = new OperatorSessions(processSecret(), state);
  const suspended = new SuspendedAgents(processState());
  const gate = new OperatorGate(authenticator, sessions, rights, state, suspended);
  const notes = new OperatorNotes({ recordEvent: () => undefined });
  return { gate, signIn: new SignIn(gate, sessions, notes, rights, state) };
}

describe('a sign-out', () => {
  const adapter = new NodeHttpAdapter();
  let server: Server;
  let url: string;
  beforeAll(async () => {
    const parts = signIn();
    const edge = { refusalFor: () => Promise.resolve(null), unread: { own: () => undefined } };
    class TestModule {}
    Module({
      controllers: [SessionController],
      providers: [
        { provide: SignIn, useValue: parts.signIn },
        { provide: OidcSignIn, useValue: { methods: {}, endOfSession: () => Promise.resolve(null) } },
        { provide: OperatorGate, useValue: parts.gate },
        { provide: McpEdge, useValue: edge },
      ],
    })(TestModule);
    const app = await NestFactory.create(TestModule, adapter, { bodyParser: false, logger: ['error'] });
    await app.init();
    server = createServer((request, response) => {
      void adapter.handle(request, response, request.url ?? '');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/console/session`;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const ask = async (method: string, headers: Record<string, string> = {}, body?: string) => {
    const changing = { 'X-Parley-Console': '1', 'Content-Type': 'application/json', ...headers };
    const response = await fetch(url, { method, headers: changing, ...(body !== undefined && { body }) });
    return {
      status: response.status,
      cookie: response.headers.get('set-cookie') ?? '',
      body: await response.json(),
    };
  };
  const startSession = async () => {
    const { status, cookie } = await ask('POST', {}, '{"key":"key-of-chief"}');
    expect(status).toBe(200);
    return cookie.split(';')[0] ?? '';
  };

  it('ends the session for every copy of its cookie', async () => {
    const cookie = await startSession();
    expect(await ask('GET', { Cookie: cookie })).toMatchObject({ status: 200, body: { agent: 'chief' } });
    const out = await ask('DELETE', { Cookie: cookie });
    expect(out).toMatchObject({ status: 200, body: { signed_in: false } });
    expect(out.cookie).toMatch(/^parley-console=;.*Max-Age=0/);
    expect(await ask('GET', { Cookie: cookie })).toMatchObject({
      status: 401,
      body: { error: 'sign in again' },
    });
  });

  it('that cannot be remembered any more is refused, and the browser forgets its session all the same', async () => {
    for (let at = 1; at < SHARE; at += 1) await ask('DELETE', { Cookie: await startSession() });
    const out = await ask('DELETE', { Cookie: await startSession() });
    expect(out.status).toBe(503);
    expect(out.body).toEqual({ error: 'shared state cannot be reached at the moment' });
    expect(out.cookie).toMatch(/^parley-console=;.*Max-Age=0/);
  });
});
