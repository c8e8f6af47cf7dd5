import { afterAll, beforeAll } from 'vitest';
import {
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

const openFurther = (seed: unknown) => database.openFurther(seed);
const openOfTenant = (seed: unknown) => database.openOfTenant(seed);

recordSearcherContract('the MongoDB adapter beside the first database', openFurther);
schemaCatalogueContract('the MongoDB adapter beside the first database', openFurther);

recordReaderContract('the MongoDB adapter in the database of a tenant', openOfTenant, { ofParse: false });
recordSearcherContract('the MongoDB adapter in the database of a tenant', openOfTenant, { rowRights: false });
recordWriterContract('the MongoDB adapter in the database of a tenant', openOfTenant, { ofParse: false });
schemaCatalogueContract('the MongoDB adapter in the database of a tenant', openOfTenant, { ofParse: false });
