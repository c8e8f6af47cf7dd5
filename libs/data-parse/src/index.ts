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
