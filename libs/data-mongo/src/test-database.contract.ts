import type { SchemaCatalogue } from '#data';
import { type PlainColumn, isPlainObject } from '#policy';
import { randomBytes } from 'node:crypto';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { Binary, type Document } from 'mongodb';
import {
  type DriverDocument,
  type FurtherConnections,
  MongoConnection,
  type MongoConnectionOptions,
} from './connection/mongo-connection.js';
import { MongoChangeFeed } from './feed/mongo-change-feed.js';
import { MongoRecordReader } from './read/mongo-record-reader.js';
import { MongoSchemaCatalogue } from './schema/mongo-schema-catalogue.js';
import { MongoSchemaWriter } from './schema/mongo-schema-writer.js';
import { PARSE_ALONE, type StorageDeclarations } from './schema/storage-declarations.js';
import { MongoRecordSearcher } from './search/mongo-record-searcher.js';
import { loadSeed } from './seed/load-seed.js';
import { parseSeed } from './seed/parse-seed.js';
import type { SeedClass } from './seed/seed.js';
import { waitForConnection } from './testing/wire-front.js';
import { MongoRecordWriter } from './write/mongo-record-writer.js';

/** The database of the tests: the one in `MONGODB_URI`, else an embedded one. */
export class TestDatabase {
  private constructor(
    readonly uri: string,
    private readonly embedded: EmbeddedMongo | null,
  ) {}

  static async start(): Promise<TestDatabase> {
    const given = process.env['MONGODB_URI'];
    if (given) return new TestDatabase(given, null);
    const embedded = await EmbeddedMongo.start();
    return new TestDatabase(embedded.uri, embedded);
  }

  async stop(): Promise<void> {
    await this.embedded?.close();
  }

  /** The same with a driver that reports the commands it sends. */
  openMonitored(seed: unknown, uriOptions = '') {
    return this.open(seed, `${this.uri.includes('?') ? '&' : '/?'}monitorCommands=true${uriOptions}`);
  }

  /** A separate store that contains the given seed. `uriOptions` are added to the connection string. */
  async open(seed: unknown, uriOptions = '') {
    const connection = this.connect(uriOptions);
    await loadSeed(connection, parseSeed(seed));
    return createStores(connection, PARSE_ALONE);
  }

  /** The same, whose reads use connections beside the driver from the first one on. */
  async openFast(seed: unknown) {
    const connection = this.connect('', true);
    await loadSeed(connection, parseSeed(seed));
    if (connection.fastReads) await waitForConnection(connection.fastReads);
    return createStores(connection, PARSE_ALONE);
  }

  /** A separate store with the same rows in collections that Parse did not write, under other names. */
  async openPlain(seed: unknown) {
    const connection = this.connect();
    return createStores(connection, await loadPlain(connection, parseSeed(seed)));
  }

  /** The same rows in a database beside the first one, which has users and roles alone. */
  async openFurther(seed: unknown, more: Partial<MongoConnectionOptions> = {}) {
    const all = parseSeed(seed);
    const ofUsers = all.classes.filter(({ className }) => className.startsWith('_'));
    const further = this.connect('', false, more);
    const connection = this.connect('', false, {}, new Map([['crm', further]]));
    await loadSeed(connection, { ...all, classes: ofUsers, objects: new Map(), relations: [] });
    await loadSeed(further, { ...all, users: [], roles: [], sessions: [] });
    const others = all.classes.filter((one) => !ofUsers.includes(one));
    const parse = new Set(others.map(({ className }) => className));
    return createStores(connection, {
      parse: new Set(['_User', '_Role', '_Session']),
      plain: [],
      further: new Map([['crm', { parse }]]),
    });
  }

  /** The same rows in collections that Parse did not write, in the database of the tenant `acme`, of whom the calls are. */
  async openOfTenant(seed: unknown) {
    const pattern = `test_${randomBytes(6).toString('hex')}_{tenant}`;
    const further = this.connect('', false, { tenants: { pattern, taken: [] } });
    const connection = this.connect('', false, {}, new Map([['app', further]]));
    const { plain } = await loadPlain(further.forTenant('acme'), parseSeed(seed));
    const declarations = {
      parse: new Set<string>(),
      plain: plain.map((one) => ({ ...one, database: 'app' })),
      further: new Map([['app', { parse: new Set<string>() }]]),
    };
    const catalogue = new MongoSchemaCatalogue(connection, { declared: () => declarations });
    return createStoresOver(connection.withTenant('acme'), catalogue.forTenant('acme'), 'acme');
  }

  /** A separate store with the given declarations. */
  openDeclared(declarations: StorageDeclarations) {
    return createStores(this.connect(), declarations);
  }

  private connect(
    uriOptions = '',
    fastReads = false,
    more: Partial<MongoConnectionOptions> = {},
    further?: FurtherConnections,
  ): MongoConnection {
    const database = `test_${randomBytes(6).toString('hex')}`;
    return new MongoConnection({ uri: this.uri + uriOptions, database, fastReads, ...more }, further);
  }
}

function createStores(connection: MongoConnection, declarations: StorageDeclarations) {
  const catalogue = new MongoSchemaCatalogue(connection, { declared: () => declarations });
  return createStoresOver(connection, catalogue);
}

/** @param tenant of whom the calls are */
function createStoresOver<Catalogue extends SchemaCatalogue>(
  connection: MongoConnection,
  catalogue: Catalogue,
  tenant?: string,
) {
  return {
    connection,
    catalogue,
    reader: new MongoRecordReader(connection, catalogue),
    searcher: new MongoRecordSearcher(connection, catalogue),
    writer: new MongoRecordWriter(connection, catalogue),
    schemaWriter: new MongoSchemaWriter(connection, catalogue),
    feed: new MongoChangeFeed(connection, catalogue),
    close: async () => {
      for (const further of connection.further.values()) {
        await further.forTenant(tenant).db.dropDatabase();
        await further.close();
      }
      await connection.db.dropDatabase();
      await connection.close();
    },
  };
}

const TIMESTAMPS = { createdAt: 'created', updatedAt: 'modified' };

const toCollectionName = (className: string) => `${className.toLowerCase()}_rows`;
const toColumnName = (field: string) => `${field}_column`;

/** References inside lists and documents, which a Parse schema does not name. */
const REFERENCES: Readonly<Record<string, Omit<PlainColumn, 'field'>>> = {
  guests: { type: 'Array', targetClass: 'Artist' },
  extra: { type: 'Object', of: new Map([['by', { type: 'Pointer', targetClass: 'Artist' }]]) },
};

/** Stores the rows of a seed as another program would: bare ids as references, dates, GeoJSON, plain names. */
async function loadPlain(
  connection: MongoConnection,
  seed: ReturnType<typeof parseSeed>,
): Promise<StorageDeclarations> {
  const classes = seed.classes.filter(({ className }) => !className.startsWith('_'));
  for (const schema of classes) {
    const collection = await connection.db.createCollection<DriverDocument>(
      toCollectionName(schema.className),
      {
        // No rule may depend on how a collection compares texts by itself.
        collation: { locale: 'en', strength: 1 },
        validator: { $jsonSchema: { bsonType: 'object', required: listRequiredColumns(schema) } },
      },
    );
    const { indexes } = schema;
    if (indexes.length > 0)
      await collection.createIndexes(
        indexes.map(({ name, key }) => ({ name, key: plainKey(key), collation: { locale: 'simple' } })),
      );
    const rows = seed.objects.get(schema.className) ?? [];
    if (rows.length > 0) await collection.insertMany(rows.map((row) => plainDocument(row) as DriverDocument));
  }
  const plain = classes.map(({ className, fields }) => ({
    className,
    collection: toCollectionName(className),
    id: null,
    timestamps: TIMESTAMPS,
    properties: new Map(
      ownFields(fields).map(([name, { type, targetClass }]): [string, PlainColumn] => [
        name,
        { type, ...(targetClass && { targetClass }), field: toColumnName(name), ...REFERENCES[name] },
      ]),
    ),
  }));
  return { parse: new Set(), plain };
}

const BUILT_IN = new Set(['objectId', 'createdAt', 'updatedAt', 'ACL']);

const ownFields = (fields: SeedClass['fields']) =>
  [...fields].filter(([name, { type }]) => !BUILT_IN.has(name) && type !== 'Relation');

const listRequiredColumns = ({ fields }: SeedClass): string[] => [
  '_id',
  ...ownFields(fields).flatMap(([name, { required }]) => (required ? [toColumnName(name)] : [])),
];

const plainKey = (key: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(key).map(([field, kind]) => [toColumnName(field), kind as 1]));

function plainDocument({ objectId, createdAt, updatedAt, ...values }: Document): Document {
  const row = Object.entries(values).filter(([field]) => field !== 'ACL');
  const created = new Date(String(createdAt ?? '2026-01-01'));
  return {
    _id: objectId,
    ...Object.fromEntries(row.map(([field, value]) => [toColumnName(field), toBson(value)])),
    created,
    modified: updatedAt === undefined ? created : new Date(String(updatedAt)),
  };
}

function toBson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBson);
  if (!isPlainObject(value)) return value;
  switch (value['__type']) {
    case 'Pointer':
      return value['objectId'];
    case 'Date':
      return new Date(String(value['iso']));
    case 'GeoPoint':
      return { type: 'Point', coordinates: [value['longitude'], value['latitude']] };
    case 'Bytes':
      return new Binary(Buffer.from(String(value['base64']), 'base64'));
    case 'File':
      return value['name'];
    default:
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toBson(member)]));
  }
}
