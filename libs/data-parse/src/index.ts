export { LiveQuerySource } from './live-query/live-query-source.js';
export {
  inspectParseServer,
  MASTER_KEY,
  ParseConnection,
  type ParseCredentials,
} from './connection/parse-connection.js';
export { ParsePrincipalDirectory } from './identity/parse-principal-directory.js';
export { ParseRecordReader } from './read/parse-record-reader.js';
export { routedReads, routedSearches, routedWrites } from './routes/routed-stores.js';
export { CachedSessionWatch } from './routes/data-routes.js';
export { ParseSchemaCatalogue, ParseSchemaWriter } from './schema/parse-schemas.js';
export { ParseRecordWriter } from './write/parse-record-writer.js';
