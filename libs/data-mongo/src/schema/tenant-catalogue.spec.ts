import { expect, describe, it } from 'vitest';
import { RenewedCatalogue } from '#data';
import type { ClassSchema, SchemaSnapshot } from '#policy';
import { StoredSchemas } from '../storage/stored-classes.js';
import { SharedClasses } from './shared-classes.js';
import { TenantCatalogue, TenantCatalogues } from './tenant-catalogue.js';

/** Columns of the one class of a tenant. */
const COLUMNS = 50;

/** The classes of a database, without one. */
class Classes extends RenewedCatalogue {
  reads = 0;

  constructor(private readonly list: () => readonly ClassSchema[]) {
    super();
  }

  protected load(): Promise<SchemaSnapshot> {
    this.reads += 1;
    return Promise.resolve(new StoredSchemas(this.list(), () => false));
  }

  listIndexes(): Promise<[]> {
    return Promise.resolve([]);
  }

  close(): void {}
}

const schemaWith = (prefix: string): ClassSchema => ({
  className: 'Invoice',
  fields: new Map(Array.from({ length: COLUMNS }, (_, at) => [`${prefix}${at}`, { type: 'String' }])),
  indexes: [],
  classLevelPermissions: null,
  database: 'app',
});

/** How often the classes of a thousand tenants are read while each calls twice. */
async function countReads(prefixOf: (tenant: string) => string): Promise<number> {
  const base = new Classes(() => []);
  const shared = new SharedClasses();
  const opened: Classes[] = [];
  const tenants = new TenantCatalogues((tenant) => {
    const own = new Classes(() => [shared.share(schemaWith(prefixOf(tenant)))]);
    opened.push(own);
    return new TenantCatalogue(base, own, (database) => database === 'app');
  });
  for (let round = 0; round < 2; round += 1)
    for (let at = 0; at < 1_000; at += 1) {
      const snapshot = await tenants.find(`t${at}`).snapshot();
      expect(snapshot.get('Invoice')?.fields.has(`${prefixOf(`t${at}`)}0`)).toBe(true);
    }
  return opened.reduce((sum, { reads }) => sum + reads, 0);
}

describe('The classes of a thousand tenants', () => {
  it('are read once where the databases are alike: equal classes take the room of one', async () => {
    expect(await countReads(() => 'column')).toBe(1_000);
  });

  it('are read again where each tenant has other columns than all others, and more than are kept', async () => {
    expect(await countReads((tenant) => `${tenant}_`)).toBe(2_000);
  });
});

describe('A tenant whose classes are read with other columns', () => {
  it('is named, and no other one; how often a sample has seen a column is no change', async () => {
    const base = new Classes(() => []);
    const own = new Map(['acme', 'globex'].map((tenant) => [tenant, schemaWith('column')]));
    const tenants = new TenantCatalogues(
      (tenant) =>
        new TenantCatalogue(
          base,
          new Classes(() => [own.get(tenant) as ClassSchema]),
          (database) => database === 'app',
        ),
    );
    const changed: string[] = [];
    tenants.changes.subscribe((tenant) => void changed.push(tenant));
    const readAll = async () => {
      tenants.forget();
      for (const tenant of own.keys()) await tenants.find(tenant).snapshot();
    };
    await readAll();
    const counted = schemaWith('column');
    const fields = [...counted.fields].map(
      ([name, field]) => [name, { ...field, seen: { String: 7 } }] as const,
    );
    own.set('globex', { ...counted, fields: new Map(fields) });
    await readAll();
    expect(changed).toEqual([]);
    own.set('globex', { ...counted, fields: new Map([...counted.fields, ['more', { type: 'Number' }]]) });
    await readAll();
    await readAll();
    expect(changed).toEqual(['globex']);
  });
});
