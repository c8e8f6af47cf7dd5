import { randomBytes } from 'node:crypto';
import { EmbeddedMongo } from '@parley/embedded-mongo';
import { MongoConnection } from './connection/mongo-connection.js';
import { MongoChangeFeed } from './feed/mongo-change-feed.js';
import { MongoRecordReader } from './read/mongo-record-reader.js';
import { MongoSchemaCatalogue } from './schema/mongo-schema-catalogue.js';
import { MongoSchemaWriter } from './schema/mongo-schema-writer.js';
import { MongoRecordSearcher } from './search/mongo-record-searcher.js';
import { loadSeed } from './seed/load-seed.js';
import { parseSeed } from './seed/parse-seed.js';
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
  openMonitored(seed: unknown) {
    return this.open(seed, `${this.uri.includes('?') ? '&' : '/?'}monitorCommands=true`);
  }

  /** A separate store that contains the given seed. `uriOptions` are added to the connection string. */
  async open(seed: unknown, uriOptions = '') {
    const database = `test_${randomBytes(6).toString('hex')}`;
    const connection = new MongoConnection({ uri: this.uri + uriOptions, database });
    await loadSeed(connection, parseSeed(seed));
    const catalogue = new MongoSchemaCatalogue(connection);
    return {
      connection,
      catalogue,
      reader: new MongoRecordReader(connection, catalogue),
      searcher: new MongoRecordSearcher(connection, catalogue),
      writer: new MongoRecordWriter(connection, catalogue),
      schemaWriter: new MongoSchemaWriter(connection, catalogue),
      feed: new MongoChangeFeed(connection, catalogue),
      close: async () => {
        await connection.db.dropDatabase();
        await connection.close();
      },
    };
  }
}
