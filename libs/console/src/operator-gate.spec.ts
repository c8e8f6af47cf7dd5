import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, MASTER, ProcessRateLimiters } from '#core';
import { ApiKeyRule, followVersions, hashPlainKey, RecordedAuthenticator, RuleAuthenticator } from '#auth';
import { processState, SharedStateUnavailable, SuspendedAgents } from '#state';
import { processSecret } from '#dispatcher';
import { NotServed } from '#streaming';
import { nameOperator, OperatorGate } from './operator-gate.js';
import { type OperatorSession, OperatorSessions } from './operator-sessions.js';

const HOST = 'localhost:3001';

function room(requests = 1_000) {
  const chief = new ApiKeyRule(hashPlainKey('key-of-chief'), compileAgentDefinition('chief'), MASTER);
  const guest = new ApiKeyRule(hashPlainKey('key-of-guest'), compileAgentDefinition('guest'), MASTER);
  const versions = { current: [chief, guest] };
  const authenticator = new RecordedAuthenticator(
    followVersions(versions, (rules) => new RuleAuthenticator(rules)),
    { recordEvent: () => undefined },
    { assertActive: () => undefined },
  );
  let operators = ['chief'];
  const limiters = new ProcessRateLimiters();
  const state = processState();
  const silence = { isOn: false };
  const assertAnswers = () => {
    if (silence.isOn) throw new SharedStateUnavailable();
  };
  const { find } = state.endedSessions;
  state.endedSessions.find = async (id) => {
    assertAnswers();
    return find.call(state.endedSessions, id);
  };
  const current = { isSame: true };
  const sessions = new OperatorSessions(processSecret(), state);
  const suspended = new SuspendedAgents(processState());
  const gate = new OperatorGate(
    authenticator,
    sessions,
    { operators: () => operators, isCurrent: () => current.isSame },
    {
      limiters: {
        limiter: (name, { window }) => {
          const own = limiters.limiter(name, { limit: requests, window });
          const check = async (key: string) => {
            assertAnswers();
            return own.check(key);
          };
          return { check } as never;
        },
      },
    },
    suspended,
  );
  const carryKey = async (key: string) => {
    const session = sessions.begin({ authorization: `Bearer ${key}` }, key);
    return { session, cookie: `parley-console=${await sessions.seal(session, HOST)}` };
  };
  const go = { silent: () => (silence.isOn = true), reload: () => (current.isSame = false) };
  const suspend = (agent: string) => suspended.suspend({ agent, by: 'key:other', reason: 'gone wild' });
  const revokeChief = () => (versions.current = [guest]);
  return { gate, sessions, suspend, revokeChief, carrying: carryKey, demote: () => (operators = []), ...go };
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
    const { gate, revokeChief, carrying } = room();
    const { cookie } = await carrying('key-of-chief');
    const { confirm } = await gate.admit(createRequest({ cookie }));
    revokeChief();
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

  it('admits no suspended agent, by a credential, by a session, or as one that watches', async () => {
    const { gate, carrying, suspend } = room();
    const { cookie } = await carrying('key-of-chief');
    const { confirm } = await gate.admit(createRequest({ cookie }));
    await suspend('chief');
    expect(await readStatus(confirm())).toBe(403);
    expect(await readStatus(gate.admit(createRequest({ cookie })))).toBe(403);
    expect(await readStatus(gate.admit(createRequest({ 'x-mcp-api-key': 'key-of-chief' })))).toBe(403);
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

  describe('while the shared state is silent', () => {
    const readDegraded = (admitted: Promise<{ readonly degraded: boolean }>) =>
      admitted.then(
        ({ degraded }) => degraded,
        (error: unknown) => (error instanceof NotServed ? error.status : (error as Error).name),
      );

    it('admits no suspended agent, also by a session that this process verified', async () => {
      const { gate, carrying, silent, suspend } = room();
      const { cookie } = await carrying('key-of-chief');
      await gate.admit(createRequest({ cookie }));
      await suspend('chief');
      silent();
      expect(await readDegraded(gate.admit(createRequest({ cookie })))).toBe(403);
    });

    it('admits a session that this process verified, as degraded, and no session that it never saw', async () => {
      const { gate, carrying, silent } = room();
      const [known, strange] = [await carrying('key-of-chief'), await carrying('key-of-chief')];
      expect(await readDegraded(gate.admit(createRequest({ cookie: known.cookie })))).toBe(false);
      silent();
      expect(await readDegraded(gate.admit(createRequest({ cookie: known.cookie })))).toBe(true);
      expect(await readDegraded(gate.admit(createRequest({ cookie: strange.cookie })))).toBe(
        'SharedStateUnavailable',
      );
    });

    it.each([
      ['was signed out', ({ sessions, session }) => sessions.end(session)],
      ['belongs to an agent that is no operator any more', ({ demote }) => demote()],
      ['was verified under another configuration', ({ reload }) => reload()],
    ] satisfies [string, (parts: ReturnType<typeof room> & { session: never }) => unknown][])(
      'admits no session that %s',
      async (_, change) => {
        const parts = room();
        const { cookie, session } = await parts.carrying('key-of-chief');
        await parts.gate.admit(createRequest({ cookie }));
        parts.silent();
        await change({ ...parts, session: session as never });
        expect(await readDegraded(parts.gate.admit(createRequest({ cookie })))).not.toBe(true);
      },
    );

    it('admits a program by its key, as degraded, and counts its requests alone', async () => {
      const { gate, silent } = room();
      silent();
      const ask = () => readDegraded(gate.admit(createRequest({ 'x-mcp-api-key': 'key-of-chief' })));
      expect(await ask()).toBe(true);
      expect(await readDegraded(gate.admit(createRequest({ 'x-mcp-api-key': 'wrong' })))).toBe(401);
      for (let one = 1; one < 600; one += 1) await ask();
      expect(await ask()).toBe(429);
    });
  });
});

describe('an operator', () => {
  const definition = compileAgentDefinition('chief');
  const make = (principal: string, more: object = {}) => ({
    agent: new Agent({ definition, principal, ...more }),
  });
  const session = { person: { name: 'Ada Lovelace' } } as unknown as OperatorSession;

  it.each([
    ['the person that signed in', { ...make('https://id.example|42'), session }, 'Ada Lovelace'],
    ['the name of its key', make('key:0a1b2c3d4e5f6071', { keyName: 'ops-2025' }), 'ops-2025'],
    ['the agent of a key without a name', make('key:0a1b2c3d4e5f6071'), 'chief'],
    ['the subject of its certificate', make('certificate:CN=ops'), 'certificate:CN=ops'],
  ])('is called by what people know: %s', (_, operator, name) => {
    expect(nameOperator(operator)).toBe(name);
  });
});
