export { MongoAuditCollection } from './audit/mongo-audit-collection.js';
export { MongoChangeSets } from './changes/mongo-change-sets.js';
export { MongoRowTransactions } from './changes/mongo-row-transactions.js';
export {
  type ApplicationConnection,
  ApplicationConnectionError,
  type ApplicationMongoClient,
  type ApplicationMongooseConnection,
  useApplicationConnection,
} from './connection/application-connection.js';
export { connectionProblem } from './connection/connection-problem.js';
export { assertConnectionString, ConnectionStringError } from './connection/connection-string.js';
export { inspectMongo, type MongoFacts } from './connection/inspect-mongo.js';
export {
  MongoConnection,
  type MongoConnectionOptions,
  type FurtherConnections,
} from './connection/mongo-connection.js';
export { MongoPrincipalDirectory } from './identity/mongo-principal-directory.js';
export { MongoUserSessions } from './identity/mongo-user-sessions.js';
export { ExtendedJsonPipelines } from './query/pipeline-to-storage.js';
export { MongoRecordReader } from './read/mongo-record-reader.js';
export { MongoSchemaCatalogue } from './schema/mongo-schema-catalogue.js';
export type { CatalogueProblem } from './schema/plain-collections.js';
export { DatabaseSnapshot, loadSeed } from './seed/load-seed.js';
export { parseSeed } from './seed/parse-seed.js';
export { type Seed, SeedError } from './seed/seed.js';
export { MongoChangeFeed } from './feed/mongo-change-feed.js';
export { MongoRecordWriter } from './write/mongo-record-writer.js';
export { MongoSchemaWriter } from './schema/mongo-schema-writer.js';
export { MongoRecordSearcher } from './search/mongo-record-searcher.js';
export { type AclMatchStage, aclReadMatchStage, aclWriteMatchStage } from './storage/acl-stages.js';
export { PARSE_ALONE, type StorageDeclarations } from './schema/storage-declarations.js';
export {
  DatabaseSurvey,
  type SeenType,
  type SurveyedCollection,
  type SurveyedColumn,
} from './survey/database-survey.js';
export { countDanglingReferences } from './survey/dangling-references.js';
