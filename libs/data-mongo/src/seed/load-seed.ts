import { setOwn } from '#core';
import { createHash } from 'node:crypto';
import {
  BSON,
  type Db,
  type Document,
  type IndexDescription,
  ObjectId,
  type OptionalUnlessRequiredId,
} from 'mongodb';
import type { ParseRow } from '#data';
import type { MongoConnection, DriverDocument } from '../connection/mongo-connection.js';
import { asStoreOperation } from '../errors.js';
import { geoIndexes } from '../schema/mongo-schema-writer.js';
import { schemaRow } from '../schema/schema-row.js';
import { pointerTo } from '../storage/class-storage.js';
import { ParseStorage } from '../storage/parse-storage.js';
import type { Seed, SeedClass, SeedRole, SeedSession, SeedUser } from './seed.js';

export interface LoadSeedOptions {
  /** Does not write to a database that already has a Parse schema. Default true. */
  readonly onlyIfEmpty?: boolean;
  /** `createdAt` of rows without dates. Default: now. */
  readonly now?: Date;
}

export interface LoadedSeed {
  /** False when the database was not empty and so nothing was written. */
  readonly loaded: boolean;
  /** Documents written, join rows included. */
  readonly rows: number;
}

const { EJSON } = BSON;

const ROWS_PER_INSERT = 1000;

const COMMENT = 'parley seed';

/**
 * Writes a seed as Parse Server would have stored it.
 * @throws StoreError `duplicate` when rows of the seed exist already
 */
export function loadSeed(
  connection: MongoConnection,
  seed: Seed,
  options: LoadSeedOptions = {},
): Promise<LoadedSeed> {
  return asStoreOperation(undefined, async () => {
    if ((options.onlyIfEmpty ?? true) && (await hasData(connection, seed))) return { loaded: false, rows: 0 };
    const { collections, schema } = await seedCollections(seed, options.now ?? new Date());
    // In their order: a data file that a build makes of a seed has the same bytes each time.
    for (const content of collections) await write(connection, content);
    // The schema is written last, so that a database with a schema was loaded completely.
    await write(connection, schema);
    return { loaded: true, rows: collections.reduce((sum, { documents }) => sum + documents.length, 0) };
  });
}

async function hasData(connection: MongoConnection, seed: Seed): Promise<boolean> {
  const found = await Promise.all(
    ['_SCHEMA', ...seed.collections.keys()].map((name) =>
      connection.collection(name).findOne({}, { projection: { _id: 1 }, comment: COMMENT }),
    ),
  );
  return found.some((row) => row !== null);
}

async function write(
  connection: MongoConnection,
  { name, documents, indexes }: CollectionContent,
): Promise<void> {
  const collection = connection.collection(name);
  if (indexes.length > 0) await collection.createIndexes([...indexes], { comment: COMMENT });
  for (let from = 0; from < documents.length; from += ROWS_PER_INSERT) {
    const batch = documents.slice(from, from + ROWS_PER_INSERT).map((row) => withId(name, row));
    await collection.insertMany(batch as OptionalUnlessRequiredId<DriverDocument>[], {
      ordered: false,
      comment: COMMENT,
    });
  }
}

/** Join rows have no id of their own. The same row gets the same one, so that a data file has the same bytes each time. */
function withId(collection: string, row: Document): Document {
  if (Object.hasOwn(row, '_id')) return row;
  const digest = createHash('sha256')
    .update(JSON.stringify([collection, row]))
    .digest();
  return { _id: new ObjectId(digest.subarray(0, 12)), ...row };
}

/** Parse Server's own cost factor. */
const BCRYPT_ROUNDS = 10;

const SESSION_LIFETIME_MS = 365 * 24 * 60 * 60 * 1000;

/** The documents and indexes of one collection. */
interface CollectionContent {
  readonly name: string;
  readonly documents: readonly Document[];
  readonly indexes: readonly IndexDescription[];
}

/** Every collection of a seed except the schema rows. */
export async function seedCollections(
  seed: Seed,
  now: Date,
): Promise<{ readonly collections: readonly CollectionContent[]; readonly schema: CollectionContent }> {
  const classes = new Map(seed.classes.map((schema) => [schema.className, schema]));
  const storage = (className: string) => createStorage(classes.get(className) as SeedClass);
  const rows = new Map<string, Document[]>([
    ['_User', await Promise.all(seed.users.map((user) => userDocument(user, storage('_User'), now)))],
    ['_Role', seed.roles.map((role) => roleDocument(role, storage('_Role'), now))],
    ['_Session', seed.sessions.map((session) => sessionDocument(session, storage('_Session'), now))],
  ]);
  for (const [className, objects] of seed.objects)
    rows.set(
      className,
      objects.map((row) => toTimedDocument(row, storage(className), now)),
    );
  const contents = seed.classes.map((schema) => ({
    name: schema.className,
    documents: rows.get(schema.className) ?? [],
    indexes: toIndexes(schema),
  }));
  const plain = [...seed.collections].map(([name, documents]) => ({
    name,
    documents: documents.map(toStored),
    indexes: [],
  }));
  const schemas = seed.classes.map((schema) => schemaRow({ ...schema, indexes: toStoredIndexes(schema) }));
  return {
    collections: [...contents, ...joinCollections(seed), ...plain],
    schema: { name: '_SCHEMA', documents: schemas, indexes: [] },
  };
}

function createStorage({ className, fields }: SeedClass): ParseStorage {
  return new ParseStorage(className, { className, fields, indexes: [], classLevelPermissions: null });
}

function toTimedDocument(row: ParseRow, storage: ParseStorage, now: Date): Document {
  const createdAt = row['createdAt'] ?? row['updatedAt'] ?? now.toISOString();
  return storage.toDocument({ ...row, createdAt, updatedAt: row['updatedAt'] ?? createdAt });
}

/**
 * Hashes a password as Parse stores it. Most seeds have no password and most starts load no seed, so the hash library is
 * loaded on demand.
 */
async function computeHash(password: string): Promise<string> {
  const { hash } = await import('bcryptjs');
  return hash(password, BCRYPT_ROUNDS);
}

/** Parse gives a new user an ACL under which only that user reads its row. */
async function userDocument(user: SeedUser, storage: ParseStorage, now: Date): Promise<Document> {
  const ACL = user.row['ACL'] ?? { [user.objectId]: { read: true, write: true } };
  const document = toTimedDocument({ ...user.row, ACL }, storage, now);
  const hashed = user.passwordHash ?? (user.password && (await computeHash(user.password)));
  return hashed ? { ...document, _hashed_password: hashed } : document;
}

/** A role without an ACL would be open to everyone; Parse refuses such roles. */
function roleDocument(role: SeedRole, storage: ParseStorage, now: Date): Document {
  return toTimedDocument({ ...role.row, ACL: role.row['ACL'] ?? {} }, storage, now);
}

function sessionDocument(session: SeedSession, storage: ParseStorage, now: Date): Document {
  const expiresAt = session.expiresAt ?? new Date(now.getTime() + SESSION_LIFETIME_MS);
  const row = {
    createdWith: { action: 'login', authProvider: 'password' },
    ...session.row,
    user: pointerTo('_User', session.userId),
    expiresAt: { __type: 'Date', iso: expiresAt.toISOString() },
  };
  return { ...toTimedDocument(row, storage, now), _session_token: session.sessionToken };
}

function joinCollections(seed: Seed): CollectionContent[] {
  // Two rows are related once, however often the seed says it.
  const joins = new Map<string, Map<string, Document>>();
  const add = (name: string, owningId: string, relatedId: string) => {
    const documents = joins.get(name) ?? new Map<string, Document>();
    joins.set(name, documents);
    documents.set(JSON.stringify([owningId, relatedId]), { relatedId, owningId });
  };
  for (const role of seed.roles) {
    for (const user of role.users) add('_Join:users:_Role', role.objectId, user);
    for (const child of role.roles) add('_Join:roles:_Role', role.objectId, child);
  }
  for (const { className, field, owningId, relatedId } of seed.relations)
    add(`_Join:${field}:${className}`, owningId, relatedId);
  return [...joins].map(([name, documents]) => ({ name, documents: [...documents.values()], indexes: [] }));
}

/** The unique indexes that Parse Server creates when it starts, with the same options. */
const PARSE_INDEXES: Readonly<Record<string, readonly string[]>> = {
  _User: ['username', 'email'],
  _Role: ['name'],
};

function toStoredKey(key: Readonly<Record<string, unknown>>, storage: ParseStorage): Record<string, unknown> {
  const stored: Record<string, unknown> = {};
  for (const [field, kind] of Object.entries(key)) setOwn(stored, storage.path(field), kind);
  return stored;
}

function toStoredIndexes(schema: SeedClass) {
  const storage = createStorage(schema);
  const own = (PARSE_INDEXES[schema.className] ?? []).map((field) => ({
    name: `${field}_1`,
    key: { [field]: 1 },
  }));
  const declared = schema.indexes.map(({ name, key }) => ({ name, key: toStoredKey(key, storage) }));
  return [...own, ...declared];
}

/** One index for each GeoPoint column for which the seed declares none. */
function listMissingGeoIndexes({ fields, indexes }: SeedClass): IndexDescription[] {
  const own = new Set(
    indexes.flatMap(({ key }) => Object.keys(key).filter((name) => key[name] !== 1 && key[name] !== -1)),
  );
  return geoIndexes([...fields].filter(([name]) => !own.has(name)));
}

function toIndexes(schema: SeedClass): IndexDescription[] {
  const unique = new Set((PARSE_INDEXES[schema.className] ?? []).map((field) => `${field}_1`));
  const declared = toStoredIndexes(schema).map(({ name, key }) => ({
    name,
    key: key as IndexDescription['key'],
    ...(unique.has(name) && { unique: true, sparse: true, background: true }),
  }));
  return [...declared, ...listMissingGeoIndexes(schema)];
}

/** Values in MongoDB Extended JSON become those that they stand for. */
function toStored(document: object): Document {
  const exact = { relaxed: false };
  return EJSON.deserialize(EJSON.serialize(document, exact), exact) as Document;
}

const SNAPSHOT_COMMENT = 'parley snapshot';

interface KeptCollection {
  readonly name: string;
  readonly documents: readonly DriverDocument[];
  /** As `listIndexes` returns them, without the `_id` index. */
  readonly indexes: readonly IndexDescription[];
}

/**
 * All documents of a database at one point in time, held in memory so that they can be restored. For test databases: no other
 * process may write while the snapshot is taken or restored.
 */
export class DatabaseSnapshot {
  private constructor(
    private readonly connection: MongoConnection,
    private readonly collections: readonly KeptCollection[],
  ) {}

  /** @throws StoreError */
  static take(connection: MongoConnection): Promise<DatabaseSnapshot> {
    return asStoreOperation(undefined, async () => {
      const names = await namesIn(connection.db);
      return new DatabaseSnapshot(
        connection,
        await Promise.all(names.map((name) => findKept(connection, name))),
      );
    });
  }

  /** Restores the documents and removes all others, those of other databases included. Indexes stay. @throws StoreError */
  putBack(): Promise<void> {
    return asStoreOperation(undefined, async () => {
      const { connection } = this;
      const known = new Set(this.collections.map(({ name }) => name));
      const others = (await namesIn(connection.db)).filter((name) => !known.has(name));
      await Promise.all(others.map((name) => empty(connection.db, name)));
      for (const database of await connection.listOtherDatabases())
        for (const name of await namesIn(database)) await empty(database, name);
      await Promise.all(this.collections.map((collection) => this.fill(collection)));
    });
  }

  /** Emptied and not dropped: its change streams continue. */
  private async fill({ name, documents, indexes }: KeptCollection): Promise<void> {
    const collection = this.connection.collection(name);
    await collection.deleteMany({}, { comment: SNAPSHOT_COMMENT });
    if (indexes.length > 0) await collection.createIndexes([...indexes], { comment: SNAPSHOT_COMMENT });
    if (documents.length > 0)
      await collection.insertMany(documents as OptionalUnlessRequiredId<DriverDocument>[], {
        ordered: false,
        comment: SNAPSHOT_COMMENT,
      });
  }
}

/** Of collections, not of views. */
async function namesIn(database: Db): Promise<string[]> {
  const listed = await database.listCollections({}, { nameOnly: true, comment: SNAPSHOT_COMMENT }).toArray();
  return listed
    .filter(({ name, type }) => type !== 'view' && !name.startsWith('system.'))
    .map(({ name }) => name);
}

/** Not dropped: a program that made its indexes at its start does not make them again. */
async function empty(database: Db, name: string): Promise<void> {
  await database.collection(name).deleteMany({}, { comment: SNAPSHOT_COMMENT });
}

async function findKept(connection: MongoConnection, name: string): Promise<KeptCollection> {
  const collection = connection.collection(name);
  const documents = await collection.find({}, { comment: SNAPSHOT_COMMENT }).toArray();
  const listed = await collection.listIndexes({ comment: SNAPSHOT_COMMENT }).toArray();
  const indexes = listed
    .filter((index) => index.name !== '_id_')
    .map(({ v: _v, ns: _ns, ...index }) => index as unknown as IndexDescription);
  return { name, documents, indexes };
}
