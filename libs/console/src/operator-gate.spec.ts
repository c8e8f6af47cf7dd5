import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER, ProcessRateLimiters } from '#core';
import { ApiKeyRule, type AuthRule, RuleAuthenticator } from '#auth';
import { processState } from '#state';
import { processSecret } from '#dispatcher';
import { NotServed } from '#streaming';
import { OperatorGate } from './operator-gate.js';
import { OperatorSessions } from './operator-sessions.js';

const HOST = 'localhost:3001';

function room(requests = 1_000) {
  const rules: AuthRule[] = [
    new ApiKeyRule('key-of-chief', compileAgentDefinition('chief'), MASTER),
    new ApiKeyRule('key-of-guest', compileAgentDefinition('guest'), MASTER),
  ];
  let operators = ['chief'];
  const limiters = new ProcessRateLimiters();
  const sessions = new OperatorSessions(processSecret(), processState());
  const gate = new OperatorGate(
    new RuleAuthenticator(rules),
    sessions,
    { operators: () => operators },
    {
      limiters: {
        limiter: (name, { window }) => limiters.limiter(name, { limit: requests, window }),
      },
    },
  );
  const carryKey = async (key: string) => {
    const session = sessions.begin({ authorization: `Bearer ${key}` }, key);
    return { session, cookie: `parley-console=${await sessions.seal(session, HOST)}` };
  };
  return { gate, sessions, rules, carrying: carryKey, demote: () => (operators = []) };
}

const createRequest = (headers: Record<string, string>) =>
  ({
    headers: { host: HOST, ...headers },
    rawHeaders: Object.entries(headers).flat(),
    socket: { remoteAddress: '127.0.0.1' },
  }) as unknown as IncomingMessage;

const readStatus = (work: Promise<unknown>) =>
  work.then(
    () => 200,
    (error: unknown) => (error instanceof NotServed ? error.status : String(error)),
  );

describe('the gate of the console', () => {
  it('admits an operator by a credential or by the session that carries it', async () => {
    const { gate, carrying } = room();
    const { cookie } = await carrying('key-of-chief');
    expect((await gate.admit(createRequest({ 'x-mcp-api-key': 'key-of-chief' }))).session).toBeUndefined();
    expect((await gate.admit(createRequest({ cookie }))).agent.definition.name).toBe('chief');
  });

  it('knows nobody without one, and answers differently to those who are no operators', async () => {
    const { gate, carrying } = room();
    expect(await readStatus(gate.admit(createRequest({})))).toBe(401);
    expect(await readStatus(gate.admit(createRequest({ 'x-mcp-api-key': 'wrong' })))).toBe(401);
    expect(await readStatus(gate.admit(createRequest({ 'x-mcp-api-key': 'key-of-guest' })))).toBe(403);
    expect(
      await readStatus(gate.admit(createRequest({ cookie: (await carrying('key-of-guest')).cookie }))),
    ).toBe(403);
  });

  it('goes by the credential where a request shows one beside a session', async () => {
    const { gate, carrying } = room();
    const { cookie } = await carrying('key-of-chief');
    expect(await readStatus(gate.admit(createRequest({ cookie, authorization: 'Bearer wrong' })))).toBe(401);
  });

  it('honours a session no longer than what it was opened with', async () => {
    const { gate, rules, carrying } = room();
    const { cookie } = await carrying('key-of-chief');
    const { confirm } = await gate.admit(createRequest({ cookie }));
    rules.splice(0, 1);
    expect(await readStatus(gate.admit(createRequest({ cookie })))).toBe(401);
    expect(await readStatus(confirm())).toBe(401);
  });

  it('confirms again while records are watched: an operator that is none any more, or signed out, is refused', async () => {
    const { gate, sessions, carrying, demote } = room();
    const { cookie, session } = await carrying('key-of-chief');
    const known = await gate.admit(createRequest({ cookie }));
    const program = await gate.admit(createRequest({ 'x-mcp-api-key': 'key-of-chief' }));
    expect(await readStatus(known.confirm())).toBe(200);
    await sessions.end(session);
    expect(await readStatus(known.confirm())).toBe(401);
    expect(await readStatus(program.confirm())).toBe(200);
    demote();
    expect(await readStatus(program.confirm())).toBe(403);
  });

  it('makes a browser forget what counts no longer', async () => {
    const { gate } = room();
    const refused = await gate
      .admit(createRequest({ cookie: 'parley-console=old' }))
      .catch((error: unknown) => error);
    expect((refused as NotServed).headers['Set-Cookie']).toMatch(/^parley-console=; .*Max-Age=0/);
  });

  it('bounds what one operator asks', async () => {
    const { gate } = room(2);
    const ask = () => readStatus(gate.admit(createRequest({ 'x-mcp-api-key': 'key-of-chief' })));
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
  });
});
