import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Document, firstKey, isDocument } from '../bson/document.js';
import { printValue } from '../bson/text.js';
import { mongoError, type MongoError } from '../errors.js';

/** A right of a user: a built-in role of MongoDB, for one database. */
export interface EmbeddedRole {
  readonly role:
    | 'read'
    | 'readWrite'
    | 'dbAdmin'
    | 'dbOwner'
    | 'readAnyDatabase'
    | 'readWriteAnyDatabase'
    | 'clusterMonitor'
    | 'root';
  readonly db: string;
}

/** A user of a server that asks for a login. */
export interface EmbeddedUser {
  readonly user: string;
  readonly password: string;
  /** The database that the user belongs to, the driver's `authSource`. Default `admin`. */
  readonly db?: string;
  readonly roles: readonly EmbeddedRole[];
}

/** As MongoDB's default for SCRAM-SHA-256. */
const SCRAM_ITERATIONS = 15_000;

/** What the server keeps of a password (RFC 5802, section 3). */
interface Credentials {
  readonly salt: Buffer;
  readonly storedKey: Buffer;
  readonly serverKey: Buffer;
}

const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const hash = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

function createCredentials(password: string): Credentials {
  const salt = randomBytes(28);
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, SCRAM_ITERATIONS, 32, 'sha256');
  return {
    salt,
    storedKey: hash(hmac(salted, 'Client Key')),
    serverKey: hmac(salted, 'Server Key'),
  };
}

const createAuthenticationError = (): MongoError => mongoError(18, 'Authentication failed.');

/** The users of a server. */
export class Users {
  private readonly known = new Map<string, { user: EmbeddedUser; credentials: Credentials }>();

  constructor(users: readonly EmbeddedUser[]) {
    for (const user of users)
      this.known.set(toUserKey(user.db ?? 'admin', user.user), {
        user,
        credentials: createCredentials(user.password),
      });
  }

  has(db: string, user: string): boolean {
    return this.known.has(toUserKey(db, user));
  }

  /** Errors: 18 for a user that does not exist or a message that is none. */
  begin(db: string, clientFirst: string): ScramConversation {
    const match = /^([ny],,)(n=([^,]+),r=([^,]+))$/.exec(clientFirst);
    const name = match?.[3]?.replaceAll('=2C', ',').replaceAll('=3D', '=');
    const found = name === undefined ? undefined : this.known.get(toUserKey(db, name));
    if (!match?.[1] || !match[2] || !match[4] || !found) throw createAuthenticationError();
    return new ScramConversation(found.user, found.credentials, match[1], match[2], match[4]);
  }
}

const toUserKey = (db: string, user: string): string => `${db}.${user}`;

/** One login with SCRAM-SHA-256 (RFC 7677), from the first message of the client on. */
export class ScramConversation {
  private readonly nonce: string;
  /** The answer to the client's first message. */
  readonly serverFirst: string;
  /** True once the password was proven. */
  proven = false;

  constructor(
    readonly user: EmbeddedUser,
    private readonly credentials: Credentials,
    private readonly header: string,
    private readonly clientFirstBare: string,
    clientNonce: string,
  ) {
    this.nonce = clientNonce + randomBytes(24).toString('base64');
    this.serverFirst = `r=${this.nonce},s=${credentials.salt.toString('base64')},i=${SCRAM_ITERATIONS}`;
  }

  /** The answer to the client's proof. Errors: 18 for a wrong one. */
  finish(clientFinal: string): string {
    const match = /^(c=([A-Za-z0-9+/=]+),r=([^,]+)),p=([A-Za-z0-9+/=]+)$/.exec(clientFinal);
    // The client repeats its header, so that nobody between the two can have changed it.
    if (!match?.[1] || match[2] !== Buffer.from(this.header).toString('base64'))
      throw createAuthenticationError();
    if (match[3] !== this.nonce) throw createAuthenticationError();
    const { storedKey, serverKey } = this.credentials;
    const signed = `${this.clientFirstBare},${this.serverFirst},${match[1]}`;
    const signature = hmac(storedKey, signed);
    const proof = Buffer.from(match[4] ?? '', 'base64');
    if (proof.length !== signature.length) throw createAuthenticationError();
    const clientKey = Buffer.from(proof.map((byte, place) => byte ^ (signature[place] ?? 0)));
    if (!timingSafeEqual(hash(clientKey), storedKey)) throw createAuthenticationError();
    this.proven = true;
    return `v=${hmac(serverKey, signed).toString('base64')}`;
  }
}

/**
 * What a command may be run with. `nothing`: before a login. `login`: by every user. `read`, `write` and `manage`: a right to the
 * database. `monitor` and `root`: a right to the server. `write` and `manage` also need the primary, and `read` needs it unless
 * the client reads from secondaries.
 */
export type CommandNeeds = 'nothing' | 'login' | 'read' | 'write' | 'manage' | 'monitor' | 'root';

/** Roles of one database and what they permit there. */
const inDatabase: Readonly<Record<string, ReadonlySet<CommandNeeds>>> = {
  read: new Set<CommandNeeds>(['read']),
  readWrite: new Set<CommandNeeds>(['read', 'write']),
  dbAdmin: new Set<CommandNeeds>(['manage']),
  dbOwner: new Set<CommandNeeds>(['read', 'write', 'manage']),
};
/** Roles of the whole server, which count only where they are of `admin`. */
const everywhere: Readonly<Record<string, ReadonlySet<CommandNeeds>>> = {
  readAnyDatabase: new Set<CommandNeeds>(['read']),
  readWriteAnyDatabase: new Set<CommandNeeds>(['read', 'write']),
  clusterMonitor: new Set<CommandNeeds>(['monitor']),
  root: new Set<CommandNeeds>(['read', 'write', 'manage', 'monitor', 'root']),
};

export function permits(user: EmbeddedUser, needs: CommandNeeds, db: string): boolean {
  if (needs === 'nothing' || needs === 'login') return true;
  return user.roles.some(
    (one) =>
      (one.db === db && inDatabase[one.role]?.has(needs) === true) ||
      (one.db === 'admin' && everywhere[one.role]?.has(needs) === true),
  );
}

/** Errors: 13 before a login, and for what no role of the user permits. */
export function authorize(
  user: EmbeddedUser | undefined,
  command: Document,
  name: string,
  needs: CommandNeeds,
  db: string,
): void {
  if (needs === 'nothing') return;
  if (!user) throw mongoError(13, `Command ${name} requires authentication`);
  const wanted = rightsFor(command, name, needs, db);
  if (wanted.every((right) => permits(user, right.needs, right.db))) return;
  throw mongoError(13, `not authorized on ${db} to execute command ${printValue(command)}`);
}

interface Right {
  readonly needs: CommandNeeds;
  readonly db: string;
}

/** Some commands concern other databases than the one they are sent to. */
function rightsFor(command: Document, name: string, needs: CommandNeeds, db: string): Right[] {
  const readDatabase = (namespace: unknown): string => String(namespace).split('.')[0] ?? '';
  if (name === 'bulkWrite' && Array.isArray(command['nsInfo']))
    return command['nsInfo'].map((one: unknown) => ({
      needs,
      db: readDatabase(isDocument(one) ? one['ns'] : undefined),
    }));
  if (name === 'renameCollection')
    return [command['renameCollection'], command['to']].map((one) => ({ needs, db: readDatabase(one) }));
  const pipeline: unknown = command['pipeline'];
  const last: unknown = Array.isArray(pipeline) ? pipeline.at(-1) : undefined;
  const stage = isDocument(last) ? firstKey(last) : undefined;
  if (name !== 'aggregate' || !isDocument(last) || (stage !== '$out' && stage !== '$merge'))
    return [{ needs, db }];
  const target: unknown = last[stage];
  const into: unknown = isDocument(target) && stage === '$merge' ? target['into'] : target;
  const other: unknown = isDocument(into) ? into['db'] : undefined;
  return [
    { needs, db },
    { needs: 'write', db: typeof other === 'string' ? other : db },
  ];
}

/** Actions as `connectionStatus` lists them, so that a client can ask what it may do. */
const actions: Partial<Record<CommandNeeds, readonly string[]>> = {
  read: ['changeStream', 'collStats', 'dbStats', 'find', 'listCollections', 'listIndexes'],
  write: ['createCollection', 'createIndex', 'dropCollection', 'dropIndex', 'insert', 'remove', 'update'],
  manage: ['collMod', 'dropDatabase', 'validate'],
};

/** The privileges of a user in MongoDB's form. */
export function listPrivileges(user: EmbeddedUser): Document[] {
  return user.roles.map(({ role, db }) => {
    const local = inDatabase[role];
    const permitted = [...(local ?? everywhere[role] ?? [])].flatMap((needs) => actions[needs] ?? []);
    // An empty name of a database is any.
    return { resource: { db: local ? db : '', collection: '' }, actions: permitted.toSorted() };
  });
}

/** What is known about the client at the other end of a connection. */
export interface ClientInfo {
  readonly connectionId: number;
  readonly address: string;
  /** The member of the replica set that it is connected to. */
  readonly member: number;
  appName: string | undefined;
  metadata: Document | undefined;
  /** Who logged in. */
  user: EmbeddedUser | undefined;
  /** A login that has begun; `short` ends without an empty exchange. */
  login: { readonly conversation: ScramConversation; readonly short: boolean } | undefined;
}
