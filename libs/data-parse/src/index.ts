export { ParseConnection, type ParseConnectionOptions } from './connection/parse-connection.js';
export {
  credentialsOf,
  MASTER_KEY,
  type ParseCredentials,
  sessionCredentials,
} from './connection/parse-credentials.js';
export { ParsePrincipalDirectory } from './identity/parse-principal-directory.js';
export { ParseRecordReader } from './read/parse-record-reader.js';
export type { StoredPipeline, StoredPipelines } from './read/stored-pipelines.js';
export { ParseSchemaCatalogue } from './schema/parse-schema-catalogue.js';
export { ParseRecordWriter } from './write/parse-record-writer.js';
export { ParseSchemaWriter } from './write/parse-schema-writer.js';
export type { DataRoutes, SessionWatch } from './routes/data-routes.js';
export { RoutedRecordReader } from './routes/routed-record-reader.js';
export { RoutedRecordWriter } from './routes/routed-record-writer.js';
export { ROUTE_TABLE, type RoutedOperation } from './routes/route-table.js';
export { SessionRecheck } from './routes/session-recheck.js';
