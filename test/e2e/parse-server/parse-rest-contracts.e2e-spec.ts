import { beforeAll } from 'vitest';
import {
  principalDirectoryContract,
  recordReaderContract,
  recordWriterContract,
  schemaCatalogueContract,
  schemaWriterContract,
} from '#data/contracts';
import { ExtendedJsonPipelines } from '#data-mongo';
import {
  MASTER_KEY,
  ParsePrincipalDirectory,
  ParseRecordReader,
  ParseRecordWriter,
  ParseSchemaCatalogue,
  ParseSchemaWriter,
} from '#data-parse';
import { ParseUnderTest } from '../../support/parse-under-test.js';

let parse: ParseUnderTest;
/** Its answers hold two rows at most, without a sign. */
let cutting: ParseUnderTest;
beforeAll(async () => {
  parse = await ParseUnderTest.start({ enforcePrivateUsers: true });
  cutting = await ParseUnderTest.start({ maxLimit: 2 });
}, 120_000);

const openAt = async (parse: ParseUnderTest, seed: unknown) => {
  await parse.fill(seed);
  const connection = parse.connection();
  const catalogue = new ParseSchemaCatalogue(connection);
  const credentials = MASTER_KEY;
  const pipelines = new ExtendedJsonPipelines(catalogue);
  const reader = new ParseRecordReader({ connection, credentials, catalogue, pipelines });
  return {
    connection,
    catalogue,
    reader,
    writer: new ParseRecordWriter({ connection, credentials, catalogue, conditions: reader }),
    schemaWriter: new ParseSchemaWriter(connection, catalogue),
    close: async () => undefined,
  };
};

const open = (seed: unknown) => openAt(parse, seed);

recordReaderContract('the REST adapter', open, { tellsBadPatterns: false });
recordReaderContract('the REST adapter of a server with a small maxLimit', (seed) => openAt(cutting, seed), {
  tellsBadPatterns: false,
});
recordWriterContract('the REST adapter', open, { newUser: { password: 'secret' }, withdrawsColumns: false });
schemaWriterContract('the REST adapter', open);
schemaCatalogueContract('the REST adapter', open);
principalDirectoryContract('the REST adapter', async (seed) => {
  const { connection, close } = await open(seed);
  return {
    directory: new ParsePrincipalDirectory(connection),
    remove: async (className, objectId) => {
      await parse.database.collection(className).deleteOne({ _id: objectId });
    },
    close,
  };
});
