export { MongoConnection, type MongoConnectionOptions } from './connection/mongo-connection.js';
export { MongoRecordReader } from './read/mongo-record-reader.js';
export { MongoSchemaCatalogue, type SchemaCatalogueOptions } from './schema/mongo-schema-catalogue.js';
export { loadSeed, type LoadedSeed, type LoadSeedOptions } from './seed/load-seed.js';
export { parseSeed } from './seed/parse-seed.js';
export { type Seed, SeedError } from './seed/seed.js';
export { MongoChangeFeed, type ChangeFeedOptions } from './feed/mongo-change-feed.js';
export { MongoRecordWriter } from './write/mongo-record-writer.js';
export { MongoSchemaWriter } from './write/mongo-schema-writer.js';
