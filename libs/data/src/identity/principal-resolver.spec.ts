import { describe, expect, it } from 'vitest';
import {
  Agent,
  compileAgentDefinition,
  type Identity,
  MASTER,
  Refused,
  sessionIdentity,
  Unauthorized,
} from '#core';
import { StoreError, type StoreErrorCode } from '../record-store.js';
import { CachedPrincipalDirectory, PrincipalDirectory, type SessionOwner } from './principal-directory.js';
import { PrincipalResolver } from './principal-resolver.js';

/** A directory over plain maps that counts its lookups and can be made to fail. */
class SmallDirectory extends PrincipalDirectory {
  readonly asked: string[] = [];
  fault: StoreErrorCode | null = null;
  readonly sessions = new Map<string, SessionOwner>([
    ['r:ada', { userId: 'ada', expiresAt: null }],
    ['r:ada2', { userId: 'ada', expiresAt: new Date(5_000) }],
    ['r:odd', { userId: 'role:admins', expiresAt: null }],
  ]);
  readonly users = new Map([['ada', ['editors', 'readers']]]);
  readonly roles = new Map([['editors', ['editors', 'readers']]]);

  ownerOfSession(token: string) {
    return this.answer(`session ${token}`, this.sessions.get(token) ?? null);
  }

  findUser(): Promise<null> {
    return Promise.resolve(null);
  }

  rolesOfUser(userId: string) {
    return this.answer(`user ${userId}`, this.users.get(userId) ?? []);
  }

  rolesOfRole(name: string) {
    return this.answer(`role ${name}`, this.roles.get(name) ?? null);
  }

  private async answer<T>(question: string, value: T): Promise<T> {
    this.asked.push(question);
    if (this.fault) throw new StoreError(this.fault);
    return value;
  }
}

const resolve = (identity: Identity, prepare: (directory: SmallDirectory) => void = () => undefined) => {
  const directory = new SmallDirectory();
  prepare(directory);
  return new PrincipalResolver(directory).resolve(
    new Agent({ definition: compileAgentDefinition('x'), identity, principal: 'p' }),
  );
};
const failing = (code: StoreErrorCode) => (directory: SmallDirectory) => {
  directory.fault = code;
};

describe('principals', () => {
  it.each<[string, Identity, readonly string[] | null, string | null]>([
    ['of the master key are none, which limits nothing', MASTER, null, null],
    [
      'of a session are its user and roles',
      sessionIdentity('r:ada'),
      ['*', 'ada', 'role:editors', 'role:readers'],
      'ada',
    ],
    [
      'of an assumed user are its roles too',
      { kind: 'aclUser', userId: 'ada' },
      ['*', 'ada', 'role:editors', 'role:readers'],
      'ada',
    ],
    ['of a user without roles are the user', { kind: 'aclUser', userId: 'bob' }, ['*', 'bob'], 'bob'],
    [
      'of a role are those above it, and no user',
      { kind: 'aclRole', role: 'role:editors' },
      ['*', 'role:editors', 'role:readers'],
      null,
    ],
  ])('%s', async (_, identity, strings, userId) => {
    expect(await resolve(identity)).toEqual({ strings, userId });
  });

  it.each([
    ['nobody knows', 'r:ghost'],
    ['is empty', ''],
    ['belongs to somebody with the id of a role', 'r:odd'],
  ])('are none for a session that %s: the caller is not recognised', async (_, token) => {
    await expect(resolve(sessionIdentity(token))).rejects.toBeInstanceOf(Unauthorized);
  });

  it('are none for a client that has neither the master key nor a session', async () => {
    const client = new Agent({
      definition: compileAgentDefinition('c', { clientMode: true }),
      principal: 'p',
    });
    const resolver = new PrincipalResolver(new SmallDirectory());
    await expect(resolver.resolve(client)).rejects.toBeInstanceOf(Unauthorized);
  });

  it.each<[string, Identity]>([
    ['a role that does not exist', { kind: 'aclRole', role: 'ghosts' }],
    ['a role without a name', { kind: 'aclRole', role: 'role:' }],
    ['a user whose id could be a role', { kind: 'aclUser', userId: 'role:editors' }],
    ['a user without id', { kind: 'aclUser', userId: '' }],
  ])('are refused for %s, without saying why', async (_, identity) => {
    const refused = await resolve(identity).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Refused);
    expect((refused as Refused).refusal).toMatchObject({ code: 'access_denied', gate: 'identity' });
    expect((refused as Refused).message).toBe('The identity of this agent cannot be resolved');
  });

  it('are fewer when roles cannot be read', async () => {
    expect(await resolve({ kind: 'aclUser', userId: 'ada' }, failing('unavailable'))).toEqual({
      strings: ['*', 'ada'],
      userId: 'ada',
    });
    expect(await resolve({ kind: 'aclRole', role: 'editors' }, failing('failed'))).toEqual({
      strings: ['*', 'role:editors'],
      userId: null,
    });
  });

  it.each<StoreErrorCode>(['timeout', 'cancelled'])(
    'are not made up when the call ends by %s',
    async (code) => {
      await expect(resolve({ kind: 'aclUser', userId: 'ada' }, failing(code))).rejects.toMatchObject({
        code,
      });
    },
  );

  it('are not made up for a session that cannot be looked up', async () => {
    await expect(resolve(sessionIdentity('r:ada'), failing('unavailable'))).rejects.toMatchObject({
      code: 'unavailable',
    });
  });

  it('never show the token of a session when the identity is printed', () => {
    expect(JSON.stringify({ ...sessionIdentity('r:secret') })).toBe('{"kind":"sessionToken"}');
  });
});

describe('the cache of principals', () => {
  let clock = 0;
  const cached = (directory: PrincipalDirectory, options = {}) => {
    clock = 0;
    return new CachedPrincipalDirectory(directory, { now: () => clock, wallClock: () => clock, ...options });
  };
  const count = ({ asked }: SmallDirectory, question: string) =>
    asked.filter((one) => one === question).length;

  it('believes a session and roles for half a minute', async () => {
    const directory = new SmallDirectory();
    const cache = cached(directory);
    for (const at of [0, 29_999, 30_000, 59_999, 3_600_000]) {
      clock = at;
      await cache.ownerOfSession('r:ada');
      await cache.rolesOfUser('ada');
      await cache.rolesOfRole('editors');
    }
    for (const question of ['session r:ada', 'user ada', 'role editors'])
      expect([question, count(directory, question)]).toEqual([question, 3]);
  });

  it('does not believe a session that was revoked more than half a minute ago', async () => {
    const directory = new SmallDirectory();
    const cache = cached(directory);
    await cache.ownerOfSession('r:ada');
    directory.sessions.delete('r:ada');
    clock = 30_000;
    expect(await cache.ownerOfSession('r:ada')).toBeNull();
  });

  it('lets a session end when its time is up', async () => {
    const directory = new SmallDirectory();
    const cache = cached(directory);
    expect(await cache.ownerOfSession('r:ada2')).toMatchObject({ userId: 'ada' });
    clock = 5_000;
    expect(await cache.ownerOfSession('r:ada2')).toBeNull();
  });

  it('asks once for all who ask at the same moment', async () => {
    const directory = new SmallDirectory();
    const cache = cached(directory);
    await Promise.all(Array.from({ length: 10 }, () => cache.rolesOfUser('ada')));
    expect(directory.asked).toHaveLength(1);
  });

  it('remembers neither errors nor what does not exist', async () => {
    const directory = new SmallDirectory();
    const cache = cached(directory);
    directory.fault = 'unavailable';
    await expect(cache.rolesOfUser('ada')).rejects.toBeInstanceOf(StoreError);
    directory.fault = null;
    expect(await cache.rolesOfUser('ada')).toEqual(['editors', 'readers']);
    expect(await cache.ownerOfSession('r:new')).toBeNull();
    directory.sessions.set('r:new', { userId: 'bob', expiresAt: null });
    expect(await cache.ownerOfSession('r:new')).toMatchObject({ userId: 'bob' });
  });

  it.each<[string, (cache: CachedPrincipalDirectory) => void, string[]]>([
    ['a session ends', (cache) => cache.forgetSession('r:ada'), ['session r:ada']],
    ['a role is written', (cache) => cache.forgetClass('_Role'), ['user ada', 'role editors']],
    ['a session is written', (cache) => cache.forgetClass('_Session'), ['session r:ada']],
    [
      'a user is written',
      (cache) => cache.forgetClass('_User'),
      ['session r:ada', 'user ada', 'role editors'],
    ],
    ['anything else is written', (cache) => cache.forgetClass('Post'), []],
  ])('forgets when %s', async (_, happens, asked) => {
    const directory = new SmallDirectory();
    const cache = cached(directory);
    const ask = async () => {
      await cache.ownerOfSession('r:ada');
      await cache.rolesOfUser('ada');
      await cache.rolesOfRole('editors');
    };
    await ask();
    directory.asked.length = 0;
    happens(cache);
    await ask();
    expect(directory.asked).toEqual(asked);
  });

  it('keeps no more than it may', async () => {
    const directory = new SmallDirectory();
    const cache = cached(directory, { maxEntries: 2 });
    for (const userId of ['ada', 'bob', 'cy', 'ada']) await cache.rolesOfUser(userId);
    expect(count(directory, 'user ada')).toBe(2);
  });
});

describe('a scope that is refreshed', () => {
  const agentOf = (identity: Identity) =>
    new Agent({ definition: compileAgentDefinition('x'), identity, principal: 'p' });
  const EDITORS: Identity = { kind: 'aclRole', role: 'role:editors' };
  const ADA: Identity = { kind: 'aclUser', userId: 'ada' };

  it.each<[string, Identity, number]>([
    ['of a user is loaded again', ADA, 2],
    ['of a role is loaded again', EDITORS, 2],
    ['of a session is left alone', sessionIdentity('r:ada'), 2],
    ['of the master key is left alone', MASTER, 0],
  ])('%s', async (_, identity, questions) => {
    const directory = new SmallDirectory();
    const resolver = new PrincipalResolver(new CachedPrincipalDirectory(directory));
    await resolver.resolve(agentOf(identity));
    await resolver.refreshScope(agentOf(identity));
    await resolver.resolve(agentOf(identity));
    expect(directory.asked).toHaveLength(questions);
  });
});

describe('a strict role', () => {
  const strict = (identity: Identity) =>
    new PrincipalResolver(new SmallDirectory(), () => true).resolve(
      new Agent({ definition: compileAgentDefinition('x'), identity, principal: 'p' }),
    );

  it('does not hold what is everyone’s', async () => {
    expect(await strict({ kind: 'aclRole', role: 'editors' })).toEqual({
      strings: ['role:editors', 'role:readers'],
      userId: null,
    });
  });

  it('is nothing that a user or session becomes', async () => {
    for (const identity of [{ kind: 'aclUser', userId: 'ada' } as const, sessionIdentity('r:ada')])
      expect((await strict(identity)).strings).toContain('*');
  });
});
