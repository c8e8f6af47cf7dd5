import { afterAll, beforeAll } from 'vitest';
import {
  changeFeedContract,
  recordReaderContract,
  recordWriterContract,
  schemaCatalogueContract,
  schemaWriterContract,
} from '#data-contracts';
import { TestDatabase } from './test-database.contract.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.start();
});
afterAll(() => database.stop());

const open = (seed: unknown) => database.open(seed);

recordReaderContract('the MongoDB adapter', open);
recordWriterContract('the MongoDB adapter', open);
schemaWriterContract('the MongoDB adapter', open);
schemaCatalogueContract('the MongoDB adapter', open);
changeFeedContract('the MongoDB adapter', open);
