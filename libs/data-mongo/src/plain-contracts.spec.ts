import { afterAll, beforeAll } from 'vitest';
import {
  changeFeedContract,
  recordReaderContract,
  recordSearcherContract,
  recordWriterContract,
  schemaCatalogueContract,
} from '#data/contracts';
import { TestDatabase } from './test-database.contract.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await TestDatabase.start();
});
afterAll(() => database.stop());

const open = (seed: unknown) => database.openPlain(seed);

recordReaderContract('the MongoDB adapter over plain collections', open, { ofParse: false });
recordSearcherContract('the MongoDB adapter over plain collections', open, { rowRights: false });
recordWriterContract('the MongoDB adapter over plain collections', open, { ofParse: false });
schemaCatalogueContract('the MongoDB adapter over plain collections', open, { ofParse: false });
changeFeedContract('the MongoDB adapter over plain collections', open);
