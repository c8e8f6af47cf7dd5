import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_ROLE_DEPTH, type PrincipalDirectory } from '../identity/principal-directory.js';
import { PATIENT } from './operation.js';

export interface OpenDirectory {
  readonly directory: PrincipalDirectory;
  /** Deletes a user or role and leaves every reference to it. */
  remove(className: '_User' | '_Role', objectId: string): Promise<void>;
  close(): Promise<void>;
}

const LADDER = Array.from({ length: MAX_ROLE_DEPTH + 3 }, (_, level) => `level${level}`);

const role = (name: string, users: readonly string[], roles: readonly string[] = []) => ({
  objectId: `id-${name.replaceAll(' ', '-')}`,
  name,
  users,
  roles,
});

/** A role inherits the roles that list it in `roles`: an admin is an editor where the role of editors lists admins. */
const SEED = {
  users: ['ada', 'bob', 'cy', 'dee', 'eve', 'gone'].map((objectId) => ({
    objectId,
    username: `name of ${objectId}`,
    email: `${objectId}@example.org`,
  })),
  roles: [
    role('editors', ['bob'], ['admins']),
    role('admins', ['ada']),
    role('readers', [], ['editors', 'admins']),
    role('left', ['cy'], ['right']),
    role('right', [], ['left']),
    role('alone', []),
    ...LADDER.map((name, level) =>
      role(name, level === 0 ? ['dee'] : [], level === 0 ? [] : [LADDER[level - 1] as string]),
    ),
    role('above the gap', [], ['gap']),
    role('gap', ['eve'], []),
    role('beside the gap', ['eve'], []),
  ],
  sessions: [
    { sessionToken: 'r:ada', user: 'ada', expiresAt: '2099-01-01T00:00:00.000Z' },
    { sessionToken: 'r:late', user: 'ada', expiresAt: '2001-01-01T00:00:00.000Z' },
    { sessionToken: 'r:gone', user: 'gone', expiresAt: '2099-01-01T00:00:00.000Z' },
  ],
};

/** The contract of every principal directory. @param open a store that contains only the given seed */
export function principalDirectoryContract(
  name: string,
  open: (seed: unknown) => Promise<OpenDirectory>,
): void {
  describe(`${name} knows who holds which rights`, PATIENT, () => {
    let store: OpenDirectory;
    beforeAll(async () => {
      store = await open(SEED);
      await store.remove('_User', 'gone');
      await store.remove('_Role', 'id-gap');
    });
    afterAll(() => store.close());

    it('names the user of a session, and its end', async () => {
      expect(await store.directory.ownerOfSession('r:ada')).toEqual({
        userId: 'ada',
        expiresAt: new Date('2099-01-01T00:00:00.000Z'),
      });
    });

    it.each([
      ['objectId', 'ada', 'ada'],
      ['username', 'name of bob', 'bob'],
      ['email', 'cy@example.org', 'cy'],
      ['username', 'ada', null],
      ['email', 'nobody@example.org', null],
      ['objectId', 'gone', null],
      ['username', '{"$ne":""}', null],
    ] as const)('finds by %s %j the user %s', async (field, value, found) => {
      expect(await store.directory.findUser(field, value)).toBe(found);
    });

    it.each([
      ['that nobody signed in with', 'r:nobody'],
      ['that has expired', 'r:late'],
      ['of a user who is gone', 'r:gone'],
      ['that is empty', ''],
      ['that looks like an operator', '{"$ne":null}'],
      ['that is somebody’s id', 'ada'],
    ])('knows nobody by a session %s', async (_, token) => {
      expect(await store.directory.ownerOfSession(token)).toBeNull();
    });

    it.each<[string, string, string[]]>([
      ['a role held directly', 'bob', ['editors', 'readers']],
      ['a role that inherits over two ways, once', 'ada', ['admins', 'editors', 'readers']],
      ['roles that inherit from each other', 'cy', ['left', 'right']],
      ['no role', 'gone', []],
      ['nobody', 'stranger', []],
      ['what is no id', 'role:admins', []],
    ])('follows inheritance upwards for %s', async (_, userId, roles) => {
      expect(await store.directory.rolesOfUser(userId)).toEqual(roles);
    });

    it('follows it ten levels and no further', async () => {
      expect(await store.directory.rolesOfUser('dee')).toEqual(LADDER.slice(0, MAX_ROLE_DEPTH + 1).sort());
      expect(await store.directory.rolesOfRole('level1')).toEqual(LADDER.slice(1, MAX_ROLE_DEPTH + 2).sort());
    });

    it('inherits nothing from a role that is gone, nor through it', async () => {
      expect(await store.directory.rolesOfUser('eve')).toEqual(['beside the gap']);
    });

    it.each<[string, string, string[] | null]>([
      ['a role nobody inherits', 'alone', ['alone']],
      ['a role and those above it', 'admins', ['admins', 'editors', 'readers']],
      ['a role in a circle', 'right', ['left', 'right']],
      ['no such role', 'ghosts', null],
      ['a role by its id', 'id-admins', null],
      ['a role that is gone', 'gap', null],
    ])('knows %s', async (_, roleName, roles) => {
      expect(await store.directory.rolesOfRole(roleName)).toEqual(roles);
    });
  });
}
