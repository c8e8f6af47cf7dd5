import type { MongoClient } from 'mongodb';
import { MongoConnection } from './mongo-connection.js';

/** The members of a `MongoClient` that show what it is. The application's copy of the driver need not be ours. */
export interface ApplicationMongoClient {
  /** A database of its server. */
  db(name?: string): object;
  /** The session shows which BSON the driver writes. */
  startSession(): { readonly id?: object | undefined; endSession(): Promise<unknown> };
  /** Of the application; they are not changed. */
  readonly options: object;
}

/** The members of a Mongoose connection that show what it is. */
export interface ApplicationMongooseConnection {
  /** Ends when it is connected, or cannot be. */
  asPromise(): Promise<unknown>;
  /** The client that it has now. */
  getClient(): object;
  /** 1 while it is connected. */
  readonly readyState: number;
  /** Of its database. */
  readonly name: string;
}

/** The connection of an application: its `MongoClient` (mongodb 7) or its Mongoose connection (Mongoose 9). */
export type ApplicationConnection = ApplicationMongoClient | ApplicationMongooseConnection;

/** A connection of the application that cannot be used. The message says what to do. */
export class ApplicationConnectionError extends Error {
  override readonly name = 'ApplicationConnectionError';
}

/** Milliseconds that a connection may take which is still connecting. */
const CONNECTING_MS = 30_000;

/** Values of another major version of BSON are refused by the driver that is to send them. */
const BSON_MAJOR = 7;
const BSON_VERSION = Symbol.for('@@mdb.bson.version');

export interface ApplicationConnectionOptions {
  /** Default: that of the connection. */
  readonly database?: string;
  /** Milliseconds that a connection may take which is still connecting. Default 30 000. */
  readonly connectingTimeout?: number;
  /** Whether no row and no class of it is ever changed. Default false. */
  readonly readOnly?: boolean;
}

/**
 * Uses the connection of an application. Its client is never closed or replaced, and its options stay as they are; whatever
 * they are, values are read and written exactly.
 * @throws ApplicationConnectionError
 */
export async function useApplicationConnection(
  given: unknown,
  { database, connectingTimeout = CONNECTING_MS, readOnly = false }: ApplicationConnectionOptions = {},
): Promise<MongoConnection> {
  if (isMongooseConnection(given)) {
    await waitForConnection(given, connectingTimeout);
    return findConnection(() => given.getClient(), database ?? given.name, readOnly);
  }
  if (!isMongoClient(given))
    throw new ApplicationConnectionError(
      'expected a MongoClient or a Mongoose connection, such as that of getConnectionToken() of @nestjs/mongoose',
    );
  return findConnection(() => given, database ?? openDatabase(given), readOnly);
}

async function findConnection(
  current: () => object,
  database: string,
  readOnly: boolean,
): Promise<MongoConnection> {
  const client = current();
  if (!isMongoClient(client))
    throw new ApplicationConnectionError('its getClient() returns no MongoClient: Mongoose 9 is needed');
  const major = await readBsonMajor(client);
  if (major !== BSON_MAJOR)
    throw new ApplicationConnectionError(
      `its driver writes ${major === null ? 'an unknown version of BSON' : `BSON ${major}`}, and Parley writes BSON ${BSON_MAJOR}: ` +
        'use mongodb 7 or Mongoose 9, or set database.uri instead, and Parley opens a connection of its own',
    );
  return new MongoConnection({ client: () => current() as MongoClient, database, readOnly });
}

async function waitForConnection(connection: ApplicationMongooseConnection, timeout: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `it is still connecting after ${timeout / 1000} seconds: check that its database can be reached`;
    timer = setTimeout(() => reject(new ApplicationConnectionError(message)), timeout);
  });
  try {
    await Promise.race([connection.asPromise(), late]);
  } catch (error) {
    if (error instanceof ApplicationConnectionError) throw error;
    // A message of the driver may repeat the URI with its password.
    throw new ApplicationConnectionError(
      'it could not connect: the error of the application has the reason',
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
  if (connection.readyState === 0 || connection.readyState === 3)
    throw new ApplicationConnectionError(
      'it is not connected: open it before Parley starts, and close it after Parley has ended',
    );
}

/** The driver shows its BSON only by values that it makes: the id of a session is one, and needs no server. */
async function readBsonMajor(client: ApplicationMongoClient): Promise<number | null> {
  const session = client.startSession();
  try {
    const id = (session.id as { readonly id?: unknown } | undefined)?.id;
    const major = (id as Record<symbol, unknown> | undefined)?.[BSON_VERSION];
    return typeof major === 'number' ? major : null;
  } finally {
    await session.endSession();
  }
}

/** The driver's own default is `test`. */
const openDatabase = ({ options }: ApplicationMongoClient): string =>
  (options as { readonly dbName?: string }).dbName ?? 'test';

const has = (given: unknown, ...methods: string[]): boolean =>
  typeof given === 'object' &&
  given !== null &&
  methods.every((method) => typeof Reflect.get(given, method) === 'function');

const isMongooseConnection = (given: unknown): given is ApplicationMongooseConnection =>
  has(given, 'asPromise', 'getClient');

const isMongoClient = (given: unknown): given is ApplicationMongoClient =>
  has(given, 'db', 'startSession', 'connect') && typeof Reflect.get(given as object, 'options') === 'object';
