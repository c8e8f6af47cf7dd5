import { parseObjects, readRow, SeedIds } from './parse-rows.js';
import { checkIndexes, DraftClasses, parseSchemas } from './parse-schemas.js';
import {
  SeedIssues,
  type Seed,
  SeedError,
  type SeedRelation,
  type SeedRole,
  type SeedSession,
  type SeedUser,
} from './seed.js';

/**
 * Parses the JSON of a seed file. Classes and fields that occur only in rows get the types of their values.
 * @throws SeedError listing every issue with its path
 */
export function parseSeed(json: unknown): Seed {
  const issues = new SeedIssues();
  const seed = issues.object(json, 'seed', [
    'schemas',
    'users',
    'roles',
    'sessions',
    'objects',
    'collections',
  ]);
  const collections = parseCollections(seed['collections'], issues);
  const classes = new DraftClasses();
  parseSchemas(seed['schemas'], classes, issues);
  // Collections alone are no database of Parse.
  const isPlain = seed['collections'] !== undefined && Object.keys(seed).length === 1;
  if (!isPlain) for (const system of ['_User', '_Role', '_Session']) classes.of(system);
  const users = parseUsers(seed['users'], classes, issues);
  const references = userReferences(users);
  const roles = parseRoles(seed['roles'], references, classes, issues);
  const sessions = parseSessions(seed['sessions'], references, classes, issues);
  const { objects, relations } = parseObjects(seed['objects'], classes, issues);
  checkIndexes(classes, issues);
  if (issues.issues.length > 0) throw new SeedError(issues.issues);
  return {
    classes: [...classes].map((draft) => draft.finish()),
    users,
    roles,
    sessions,
    objects,
    relations,
    collections,
  };
}

function parseCollections(value: unknown, issues: SeedIssues): ReadonlyMap<string, readonly object[]> {
  const given = value === undefined ? {} : issues.object(value, 'collections');
  return new Map(
    Object.entries(given).map(([name, documents]) => {
      const path = `collections.${name}`;
      const listed = issues.list(documents, path);
      return [name, listed.map((document, index) => issues.object(document, `${path}[${index}]`))];
    }),
  );
}

const BCRYPT_HASH = /^\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}$/;

/** The names by which other rows may refer to a user or a role. */
type References = ReadonlyMap<string, string>;

function isGiven<T>(value: T | null): value is T {
  return value !== null;
}

function ownRow(
  className: string,
  row: Record<string, unknown>,
  path: string,
  classes: DraftClasses,
  issues: SeedIssues,
) {
  const relations: SeedRelation[] = [];
  const read = readRow(row, path, classes.of(className), relations, issues);
  if (relations.length > 0) issues.add(path, 'relations can be seeded on classes of your own only');
  return read;
}

function parseUsers(value: unknown, classes: DraftClasses, issues: SeedIssues): SeedUser[] {
  const ids = new SeedIds('_User', issues);
  const names = new Set<string>();
  const emails = new Set<string>();
  return issues
    .list(value, 'users')
    .map((entry, index) => {
      const path = `users[${index}]`;
      const { objectId: given, password, passwordHash, ...others } = issues.object(entry, path);
      const objectId = ids.readId(given, index, path);
      const username = issues.text(others['username'], `${path}.username`);
      if (username === undefined) return null;
      issues.unique(names, username, `${path}.username`);
      const email = issues.optionalText(others['email'], `${path}.email`);
      if (email !== undefined) issues.unique(emails, email, `${path}.email`);
      const plain = issues.optionalText(password, `${path}.password`);
      const hash = issues.optionalText(passwordHash, `${path}.passwordHash`);
      if (hash !== undefined && !BCRYPT_HASH.test(hash))
        issues.add(`${path}.passwordHash`, 'must be a bcrypt hash');
      if (plain !== undefined && hash !== undefined) issues.add(path, 'has both password and passwordHash');
      const row = ownRow('_User', { ...others, objectId }, path, classes, issues);
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

/** A user may be referred to by object id or by username. */
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
  issues: SeedIssues,
): string[] {
  return names.flatMap((name, index) => {
    const id = references.get(name);
    if (id === undefined) issues.add(`${path}[${index}]`, `no ${what} '${name}' in this seed`);
    return id === undefined ? [] : [id];
  });
}

function parseRoles(
  value: unknown,
  users: References,
  classes: DraftClasses,
  issues: SeedIssues,
): SeedRole[] {
  const ids = new SeedIds('_Role', issues);
  const names = new Set<string>();
  const entries = issues.list(value, 'roles').map((entry, index) => {
    const path = `roles[${index}]`;
    const { objectId: given, users: members, roles: children, ...others } = issues.object(entry, path);
    const objectId = ids.readId(given, index, path);
    const name = issues.text(others['name'], `${path}.name`) ?? '';
    issues.unique(names, name, `${path}.name`);
    const row = ownRow('_Role', { ...others, objectId }, path, classes, issues);
    return { path, objectId, name, members, children, row };
  });
  const roles: References = new Map(entries.map(({ name, objectId }) => [name, objectId]));
  return entries.map(({ path, objectId, name, members, children, row }) => ({
    objectId,
    name,
    users: resolve(issues.strings(members, `${path}.users`), users, `${path}.users`, 'user', issues),
    roles: resolve(issues.strings(children, `${path}.roles`), roles, `${path}.roles`, 'role', issues),
    row,
  }));
}

function parseSessions(
  value: unknown,
  users: References,
  classes: DraftClasses,
  issues: SeedIssues,
): SeedSession[] {
  const ids = new SeedIds('_Session', issues);
  const tokens = new Set<string>();
  return issues
    .list(value, 'sessions')
    .map((entry, index) => {
      const path = `sessions[${index}]`;
      const {
        objectId: given,
        sessionToken,
        user,
        expiresAt: expiry,
        ...others
      } = issues.object(entry, path);
      const objectId = ids.readId(given, index, path);
      const token = issues.text(sessionToken, `${path}.sessionToken`);
      const name = issues.text(user, `${path}.user`);
      if (token === undefined || name === undefined) return null;
      issues.unique(tokens, token, `${path}.sessionToken`);
      const userId = users.get(name);
      if (userId === undefined) issues.add(`${path}.user`, `no user '${name}' in this seed`);
      const expiresAt = expiry === undefined ? undefined : issues.date(expiry, `${path}.expiresAt`);
      const row = ownRow('_Session', { ...others, objectId }, path, classes, issues);
      return { objectId, sessionToken: token, userId: userId ?? '', ...(expiresAt && { expiresAt }), row };
    })
    .filter(isGiven);
}
