import { afterAll, beforeAll } from 'vitest';
import {
  changeFeedContract,
  principalDirectoryContract,
  recordReaderContract,
  recordSearcherContract,
  recordWriterContract,
  schemaCatalogueContract,
  schemaWriterContract,
} from '#data/contracts';
import { MongoPrincipalDirectory } from './identity/mongo-principal-directory.js';
import { TestDatabase } from './test-database.contract.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.start();
});
afterAll(() => database.stop());

const open = (seed: unknown) => database.open(seed);

recordReaderContract('the MongoDB adapter', open);
recordSearcherContract('the MongoDB adapter', open);
recordReaderContract('the MongoDB adapter on connections beside the driver', (seed) =>
  database.openFast(seed),
);
recordSearcherContract('the MongoDB adapter on connections beside the driver', (seed) =>
  database.openFast(seed),
);
recordWriterContract('the MongoDB adapter', open);
schemaWriterContract('the MongoDB adapter', open);
schemaCatalogueContract('the MongoDB adapter', open);
changeFeedContract('the MongoDB adapter', open);
principalDirectoryContract('the MongoDB adapter', async (seed) => {
  const { connection, close } = await open(seed);
  return {
    directory: new MongoPrincipalDirectory(connection),
    remove: async (className, objectId) => {
      await connection.collection(className).deleteOne({ _id: objectId });
    },
    close,
  };
});
