import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import {
  changeFeedContract,
  recordReaderContract,
  recordWriterContract,
  schemaCatalogueContract,
  schemaWriterContract,
} from '#data-contracts';
import { EmbeddedMongo } from '#embedded-mongo';
import { MongoConnection } from './connection/mongo-connection.js';
import { MongoChangeFeed } from './feed/mongo-change-feed.js';
import { MongoRecordReader } from './read/mongo-record-reader.js';
import { MongoSchemaCatalogue } from './schema/mongo-schema-catalogue.js';
import { loadSeed } from './seed/load-seed.js';
import { parseSeed } from './seed/parse-seed.js';
import { MongoRecordWriter } from './write/mongo-record-writer.js';
import { MongoSchemaWriter } from './write/mongo-schema-writer.js';

let uri = process.env['MONGODB_URI'];
let embedded: EmbeddedMongo | undefined;
beforeAll(async () => {
  if (uri) return;
  embedded = await EmbeddedMongo.start();
  uri = embedded.uri;
});
afterAll(() => embedded?.close());

async function open(seed: unknown) {
  const connection = new MongoConnection({
    uri: uri as string,
    database: `test_${randomBytes(6).toString('hex')}`,
  });
  await loadSeed(connection, parseSeed(seed));
  const catalogue = new MongoSchemaCatalogue(connection);
  return {
    catalogue,
    reader: new MongoRecordReader(connection, catalogue),
    writer: new MongoRecordWriter(connection, catalogue),
    schemaWriter: new MongoSchemaWriter(connection, catalogue),
    feed: new MongoChangeFeed(connection, catalogue),
    close: async () => {
      await connection.db.dropDatabase();
      await connection.close();
    },
  };
}

recordReaderContract('the MongoDB adapter', open);
recordWriterContract('the MongoDB adapter', open);
schemaWriterContract('the MongoDB adapter', open);
schemaCatalogueContract('the MongoDB adapter', open);
changeFeedContract('the MongoDB adapter', open);
