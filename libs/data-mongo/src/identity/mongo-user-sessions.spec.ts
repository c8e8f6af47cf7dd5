import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, type Identity, MASTER } from '#core';
import { Impersonation, ImpersonationError, PrincipalResolver } from '#data';
import { TestDatabase } from '../test-database.contract.js';
import { MongoPrincipalDirectory } from './mongo-principal-directory.js';
import { MongoUserSessions } from './mongo-user-sessions.js';

const LATER = '2099-01-01T00:00:00.000Z';
const at = (day: number) => `2025-01-0${day}T00:00:00.000Z`;
const SEED = {
  users: ['ada', 'bob', 'cy', 'dee'].map((objectId) => ({ objectId, username: objectId })),
  roles: [{ name: 'editors', users: ['ada'] }],
  sessions: [
    { sessionToken: 'r:old', user: 'ada', expiresAt: LATER, createdAt: at(1) },
    { sessionToken: 'r:new', user: 'ada', expiresAt: LATER, createdAt: at(3) },
    { sessionToken: 'r:ended', user: 'ada', expiresAt: '2025-02-01T00:00:00.000Z', createdAt: at(4) },
    { sessionToken: 'r:cy', user: 'cy', expiresAt: '2025-02-01T00:00:00.000Z', createdAt: at(5) },
  ],
};

let database: TestDatabase;
let store: Awaited<ReturnType<TestDatabase['open']>>;
let sessions: MongoUserSessions;
beforeAll(async () => {
  database = await TestDatabase.start();
  store = await database.open(SEED);
  sessions = new MongoUserSessions(store.connection);
});
afterAll(async () => {
  await store.close();
  await database.stop();
});

const agent = (identity: Identity = MASTER, options: { clientMode?: boolean } = {}) =>
  new Agent({ definition: compileAgentDefinition('x', options), identity, principal: 'p' });
const stored = (token: string) => store.connection.collection('_Session').findOne({ _session_token: token });

describe('the sessions of a user', () => {
  it('are known by the newest that has not ended', async () => {
    expect(await sessions.newest('ada')).toBe('r:new');
  });

  it.each(['bob', 'cy', 'nobody', 'role:editors', '', '$ne'])('are none of %j', async (userId) => {
    expect(await sessions.newest(userId)).toBeNull();
  });

  it('are made restricted, for an hour, and recognised from then on', async () => {
    const now = new Date();
    const token = await new MongoUserSessions(store.connection, () => now).mint('bob');
    expect(token).toMatch(/^r:[0-9a-f]{32}$/);
    expect(await stored(String(token))).toMatchObject({
      _p_user: '_User$bob',
      restricted: true,
      createdWith: { action: 'create' },
      expiresAt: new Date(now.getTime() + 3_600_000),
    });
    expect(await sessions.newest('bob')).toBe(token);
  });

  it.each(['nobody', 'role:editors'])('are made for no one who is not a user: %s', async (userId) => {
    expect(await sessions.mint(userId)).toBeNull();
  });
});

describe('an agent that is made to act as a user', () => {
  const impersonation = () => new Impersonation(sessions);

  it('has the rights of that user’s session, and says whose it is', async () => {
    const acting = await impersonation().impersonate(agent(), 'ada', { label: ' desk ' });
    expect(acting).toMatchObject({
      identity: { kind: 'sessionToken' },
      impersonatedUserId: 'ada',
      impersonationLabel: 'desk',
      usesMasterKey: false,
      principal: 'p',
    });
    const resolver = new PrincipalResolver(new MongoPrincipalDirectory(store.connection));
    expect(await resolver.resolveAgent(acting)).toEqual({
      strings: ['*', 'ada', 'role:editors'],
      userId: 'ada',
    });
  });

  it('is refused without a session, and stays what it was', async () => {
    const before = agent();
    const failed = impersonation().impersonate(before, 'cy');
    await expect(failed).rejects.toThrow(ImpersonationError);
    await expect(failed).rejects.toThrow(/no active session/);
    expect([before.impersonatedUserId, before.usesMasterKey]).toEqual([null, true]);
  });

  it('gets a session made when it may, one for all who ask at once', async () => {
    const acting = impersonation();
    const made = await Promise.all([1, 2, 3].map(() => acting.impersonate(agent(), 'dee', { mint: true })));
    const tokens = new Set(made.map(({ identity }) => 'token' in identity && identity.token));
    expect(tokens.size).toBe(1);
    const ofDee = await store.connection.collection('_Session').countDocuments({ _p_user: '_User$dee' });
    expect(ofDee).toBe(1);
  });

  it.each<[string, Agent]>([
    ['a user', agent({ kind: 'aclUser', userId: 'ada' })],
    ['a role', agent({ kind: 'aclRole', role: 'editors' })],
    ['a client without a master key', agent(MASTER, { clientMode: true })],
  ])('needs the master key: %s has none', async (_, one) => {
    await expect(impersonation().impersonate(one, 'ada')).rejects.toThrow(/master key/);
  });

  it.each([{ className: 'Post', objectId: 'ada' }, 'role:editors', ''])(
    'takes users only: %j',
    async (user) => {
      await expect(impersonation().impersonate(agent(), user)).rejects.toThrow(TypeError);
    },
  );

  it('returns to the master key, and its session goes on', async () => {
    const acting = await impersonation().impersonate(agent(), 'ada');
    const ended = impersonation().stopImpersonating(acting);
    expect([ended.usesMasterKey, ended.impersonatedUserId]).toEqual([true, null]);
    expect(await stored('r:new')).not.toBeNull();
  });

  it('is not given the master key when it acted as nobody', () => {
    const user = agent({ kind: 'aclUser', userId: 'ada' });
    expect(impersonation().stopImpersonating(user)).toBe(user);
  });
});
