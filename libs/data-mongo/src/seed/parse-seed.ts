import { parseObjects, readRow, SeedIds } from './parse-rows.js';
import { checkIndexes, DraftClasses, parseSchemas } from './parse-schemas.js';
import {
  FaultList,
  type Seed,
  SeedError,
  type SeedRelation,
  type SeedRole,
  type SeedSession,
  type SeedUser,
} from './seed.js';

/**
 * Reads a seed file's JSON. Classes and fields that only rows mention get the types their values have.
 * @throws SeedError listing every fault with its path
 */
export function parseSeed(json: unknown): Seed {
  const faults = new FaultList();
  const seed = faults.object(json, 'seed', ['schemas', 'users', 'roles', 'sessions', 'objects']);
  const classes = new DraftClasses();
  parseSchemas(seed['schemas'], classes, faults);
  for (const system of ['_User', '_Role', '_Session']) classes.of(system);
  const users = parseUsers(seed['users'], classes, faults);
  const references = userReferences(users);
  const roles = parseRoles(seed['roles'], references, classes, faults);
  const sessions = parseSessions(seed['sessions'], references, classes, faults);
  const { objects, relations } = parseObjects(seed['objects'], classes, faults);
  checkIndexes(classes, faults);
  if (faults.faults.length > 0) throw new SeedError(faults.faults);
  return { classes: [...classes].map((draft) => draft.finish()), users, roles, sessions, objects, relations };
}

const BCRYPT_HASH = /^\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}$/;

/** What others may call a user or a role by. */
type References = ReadonlyMap<string, string>;

function isGiven<T>(value: T | null): value is T {
  return value !== null;
}

function ownRow(
  className: string,
  row: Record<string, unknown>,
  path: string,
  classes: DraftClasses,
  faults: FaultList,
) {
  const relations: SeedRelation[] = [];
  const read = readRow(row, path, classes.of(className), relations, faults);
  if (relations.length > 0) faults.add(path, 'relations can be seeded on classes of your own only');
  return read;
}

function parseUsers(value: unknown, classes: DraftClasses, faults: FaultList): SeedUser[] {
  const ids = new SeedIds('_User', faults);
  const names = new Set<string>();
  const emails = new Set<string>();
  return faults
    .list(value, 'users')
    .map((entry, index) => {
      const path = `users[${index}]`;
      const { objectId: given, password, passwordHash, ...others } = faults.object(entry, path);
      const objectId = ids.idOf(given, index, path);
      const username = faults.text(others['username'], `${path}.username`);
      if (username === undefined) return null;
      faults.unique(names, username, `${path}.username`);
      const email = faults.optionalText(others['email'], `${path}.email`);
      if (email !== undefined) faults.unique(emails, email, `${path}.email`);
      const plain = faults.optionalText(password, `${path}.password`);
      const hash = faults.optionalText(passwordHash, `${path}.passwordHash`);
      if (hash !== undefined && !BCRYPT_HASH.test(hash))
        faults.add(`${path}.passwordHash`, 'must be a bcrypt hash');
      if (plain !== undefined && hash !== undefined) faults.add(path, 'has both password and passwordHash');
      const row = ownRow('_User', { ...others, objectId }, path, classes, faults);
      return {
        objectId,
        username,
        ...(plain !== undefined && { password: plain }),
        ...(hash !== undefined && { passwordHash: hash }),
        row,
      };
    })
    .filter(isGiven);
}

/** A user may be named by object id or by username. */
function userReferences(users: readonly SeedUser[]): References {
  return new Map([
    ...users.map((user) => [user.username, user.objectId] as const),
    ...users.map((user) => [user.objectId, user.objectId] as const),
  ]);
}

function resolve(
  names: readonly string[],
  references: References,
  path: string,
  what: string,
  faults: FaultList,
): string[] {
  return names.flatMap((name, index) => {
    const id = references.get(name);
    if (id === undefined) faults.add(`${path}[${index}]`, `no ${what} '${name}' in this seed`);
    return id === undefined ? [] : [id];
  });
}

function parseRoles(value: unknown, users: References, classes: DraftClasses, faults: FaultList): SeedRole[] {
  const ids = new SeedIds('_Role', faults);
  const names = new Set<string>();
  const entries = faults.list(value, 'roles').map((entry, index) => {
    const path = `roles[${index}]`;
    const { objectId: given, users: members, roles: children, ...others } = faults.object(entry, path);
    const objectId = ids.idOf(given, index, path);
    const name = faults.text(others['name'], `${path}.name`) ?? '';
    faults.unique(names, name, `${path}.name`);
    const row = ownRow('_Role', { ...others, objectId }, path, classes, faults);
    return { path, objectId, name, members, children, row };
  });
  const roles: References = new Map(entries.map(({ name, objectId }) => [name, objectId]));
  return entries.map(({ path, objectId, name, members, children, row }) => ({
    objectId,
    name,
    users: resolve(faults.strings(members, `${path}.users`), users, `${path}.users`, 'user', faults),
    roles: resolve(faults.strings(children, `${path}.roles`), roles, `${path}.roles`, 'role', faults),
    row,
  }));
}

function parseSessions(
  value: unknown,
  users: References,
  classes: DraftClasses,
  faults: FaultList,
): SeedSession[] {
  const ids = new SeedIds('_Session', faults);
  const tokens = new Set<string>();
  return faults
    .list(value, 'sessions')
    .map((entry, index) => {
      const path = `sessions[${index}]`;
      const {
        objectId: given,
        sessionToken,
        user,
        expiresAt: expiry,
        ...others
      } = faults.object(entry, path);
      const objectId = ids.idOf(given, index, path);
      const token = faults.text(sessionToken, `${path}.sessionToken`);
      const name = faults.text(user, `${path}.user`);
      if (token === undefined || name === undefined) return null;
      faults.unique(tokens, token, `${path}.sessionToken`);
      const userId = users.get(name);
      if (userId === undefined) faults.add(`${path}.user`, `no user '${name}' in this seed`);
      const expiresAt = expiry === undefined ? undefined : faults.date(expiry, `${path}.expiresAt`);
      const row = ownRow('_Session', { ...others, objectId }, path, classes, faults);
      return { objectId, sessionToken: token, userId: userId ?? '', ...(expiresAt && { expiresAt }), row };
    })
    .filter(isGiven);
}
