import type { Document, IndexDescription } from 'mongodb';
import type { ParseRow } from '#data';
import { geoIndexes } from '../schema/geo-index.js';
import { schemaRow } from '../schema/schema-row.js';
import { pointerTo } from '../storage/pointer-string.js';
import { StorageNames } from '../storage/storage-names.js';
import { rowToDocument } from '../storage/to-storage.js';
import { setOwn } from '../storage/own-property.js';
import type { Seed, SeedClass, SeedRole, SeedSession, SeedUser } from './seed.js';

/** Parse Server's own cost factor. */
const BCRYPT_ROUNDS = 10;

const SESSION_LIFETIME_MS = 365 * 24 * 60 * 60 * 1000;

/** What one collection is to hold. */
export interface CollectionContent {
  readonly name: string;
  readonly documents: readonly Document[];
  readonly indexes: readonly IndexDescription[];
}

/** Every collection of a seed, the schema rows apart. */
export async function seedCollections(
  seed: Seed,
  now: Date,
): Promise<{ readonly collections: readonly CollectionContent[]; readonly schema: CollectionContent }> {
  const classes = new Map(seed.classes.map((schema) => [schema.className, schema]));
  const names = (className: string) => storageNamesOf(classes.get(className) as SeedClass);
  const rows = new Map<string, Document[]>([
    ['_User', await Promise.all(seed.users.map((user) => userDocument(user, names('_User'), now)))],
    ['_Role', seed.roles.map((role) => roleDocument(role, names('_Role'), now))],
    ['_Session', seed.sessions.map((session) => sessionDocument(session, names('_Session'), now))],
  ]);
  for (const [className, objects] of seed.objects)
    rows.set(
      className,
      objects.map((row) => timedDocument(row, names(className), now)),
    );
  const contents = seed.classes.map((schema) => ({
    name: schema.className,
    documents: rows.get(schema.className) ?? [],
    indexes: indexesOf(schema),
  }));
  const schemas = seed.classes.map((schema) => schemaRow({ ...schema, indexes: storedIndexes(schema) }));
  return {
    collections: [...contents, ...joinCollections(seed)],
    schema: { name: '_SCHEMA', documents: schemas, indexes: [] },
  };
}

function storageNamesOf({ className, fields }: SeedClass): StorageNames {
  return new StorageNames(className, { className, fields, indexes: [], classLevelPermissions: null });
}

function timedDocument(row: ParseRow, names: StorageNames, now: Date): Document {
  const createdAt = row['createdAt'] ?? row['updatedAt'] ?? now.toISOString();
  return rowToDocument({ ...row, createdAt, updatedAt: row['updatedAt'] ?? createdAt }, names);
}

/** As Parse stores it. Most seeds have no password, and most starts no seed: what hashes is loaded for those that do. */
async function hashOf(password: string): Promise<string> {
  const { hash } = await import('bcryptjs');
  return hash(password, BCRYPT_ROUNDS);
}

/** Parse gives new users an ACL of their own: nobody else reads them. */
async function userDocument(user: SeedUser, names: StorageNames, now: Date): Promise<Document> {
  const ACL = user.row['ACL'] ?? { [user.objectId]: { read: true, write: true } };
  const document = timedDocument({ ...user.row, ACL }, names, now);
  const hashed = user.passwordHash ?? (user.password && (await hashOf(user.password)));
  return hashed ? { ...document, _hashed_password: hashed } : document;
}

/** A role without an ACL would be open to everyone; Parse refuses such roles. */
function roleDocument(role: SeedRole, names: StorageNames, now: Date): Document {
  return timedDocument({ ...role.row, ACL: role.row['ACL'] ?? {} }, names, now);
}

function sessionDocument(session: SeedSession, names: StorageNames, now: Date): Document {
  const expiresAt = session.expiresAt ?? new Date(now.getTime() + SESSION_LIFETIME_MS);
  const row = {
    createdWith: { action: 'login', authProvider: 'password' },
    ...session.row,
    user: pointerTo('_User', session.userId),
    expiresAt: { __type: 'Date', iso: expiresAt.toISOString() },
  };
  return { ...timedDocument(row, names, now), _session_token: session.sessionToken };
}

function joinCollections(seed: Seed): CollectionContent[] {
  const joins = new Map<string, Document[]>();
  const add = (name: string, owningId: string, relatedId: string) => {
    const documents = joins.get(name) ?? [];
    joins.set(name, documents);
    documents.push({ relatedId, owningId });
  };
  for (const role of seed.roles) {
    for (const user of role.users) add('_Join:users:_Role', role.objectId, user);
    for (const child of role.roles) add('_Join:roles:_Role', role.objectId, child);
  }
  for (const { className, field, owningId, relatedId } of seed.relations)
    add(`_Join:${field}:${className}`, owningId, relatedId);
  return [...joins].map(([name, documents]) => ({ name, documents, indexes: [] }));
}

/** The unique indexes Parse Server makes at its start, with the very options it gives them. */
const PARSE_INDEXES: Readonly<Record<string, readonly string[]>> = {
  _User: ['username', 'email'],
  _Role: ['name'],
};

function storedKey(key: Readonly<Record<string, unknown>>, names: StorageNames): Record<string, unknown> {
  const stored: Record<string, unknown> = {};
  for (const [field, kind] of Object.entries(key)) setOwn(stored, names.path(field), kind);
  return stored;
}

function storedIndexes(schema: SeedClass) {
  const names = storageNamesOf(schema);
  const own = (PARSE_INDEXES[schema.className] ?? []).map((field) => ({
    name: `${field}_1`,
    key: { [field]: 1 },
  }));
  const declared = schema.indexes.map(({ name, key }) => ({ name, key: storedKey(key, names) }));
  return [...own, ...declared];
}

/** One for each GeoPoint column that the seed gives none. */
function missingGeoIndexes({ fields, indexes }: SeedClass): IndexDescription[] {
  const own = new Set(
    indexes.flatMap(({ key }) => Object.keys(key).filter((name) => key[name] !== 1 && key[name] !== -1)),
  );
  return geoIndexes([...fields].filter(([name]) => !own.has(name)));
}

function indexesOf(schema: SeedClass): IndexDescription[] {
  const unique = new Set((PARSE_INDEXES[schema.className] ?? []).map((field) => `${field}_1`));
  const declared = storedIndexes(schema).map(({ name, key }) => ({
    name,
    key: key as IndexDescription['key'],
    ...(unique.has(name) && { unique: true, sparse: true, background: true }),
  }));
  return [...declared, ...missingGeoIndexes(schema)];
}
