import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SchemaSnapshot } from '#policy';
import type { SchemaCatalogue } from '../schema-store.js';
import { MUSIC_SEED } from './music-seed.js';
import { PATIENT } from './operation.js';

export interface OpenCatalogue {
  readonly catalogue: SchemaCatalogue;
  close(): Promise<void>;
}

export interface CatalogueCapabilities {
  /** Whether Parse stores the rows: with rights, class permissions and classes for users. Default true. */
  readonly ofParse?: boolean;
}

/** The contract of every schema catalogue. @param open a store that contains only the given seed */
export function schemaCatalogueContract(
  name: string,
  open: (seed: unknown) => Promise<OpenCatalogue>,
  { ofParse = true }: CatalogueCapabilities = {},
): void {
  describe(`${name} knows the classes`, PATIENT, () => {
    let store: OpenCatalogue;
    let snapshot: SchemaSnapshot;
    beforeAll(async () => {
      store = await open(MUSIC_SEED);
      snapshot = await store.catalogue.snapshot();
    });
    afterAll(() => store.close());

    it('lists them in order', () => {
      const names = snapshot.classNames();
      expect(names).toEqual([...names].sort());
      expect(names).toEqual(
        expect.arrayContaining(['Album', 'Artist', 'Label', ...(ofParse ? ['_Role', '_User'] : [])]),
      );
    });

    it('types every field, with target, default and requirement', () => {
      const fields = snapshot.get('Album')?.fields;
      const known: object = ofParse ? {} : { origin: 'declared' };
      expect(fields?.get('artist')).toEqual({ type: 'Pointer', targetClass: 'Artist', ...known });
      expect(fields?.get('title')).toEqual({ type: 'String', required: true, ...known });
      expect(fields?.get('released')).toEqual({ type: 'Date', ...known });
      expect(snapshot.get('Artist')?.fields.get('home')).toEqual({ type: 'GeoPoint', ...known });
      if (!ofParse) return;
      expect(fields?.get('state')).toEqual({ type: 'String', defaultValue: 'draft' });
      expect(fields?.get('fans')).toEqual({ type: 'Relation', targetClass: '_User' });
    });

    it('names the columns every class has', () => {
      for (const className of snapshot.classNames()) {
        const fields = [...(snapshot.get(className)?.fields.keys() ?? [])];
        const own = ofParse ? ['ACL'] : [];
        expect(fields).toEqual(expect.arrayContaining(['objectId', 'createdAt', 'updatedAt', ...own]));
      }
      if (!ofParse) return;
      expect(snapshot.get('_User')?.fields.get('username')).toEqual({ type: 'String' });
    });

    it('never names a credential', () => {
      const fields = snapshot
        .classNames()
        .flatMap((className) => [...(snapshot.get(className)?.fields.keys() ?? [])]);
      for (const secret of ['password', 'authData', 'sessionToken']) expect(fields).not.toContain(secret);
      expect(fields.filter((field) => field.startsWith('_'))).toEqual([]);
    });

    it.runIf(ofParse)('reads an operation that stored permissions leave out as permitted to nobody', () => {
      const permissions = snapshot.get('Album')?.classLevelPermissions;
      expect(permissions).toMatchObject({
        find: { '*': true },
        get: { '*': true },
        protectedFields: { '*': ['price'] },
      });
      expect(permissions).toMatchObject({ create: {}, update: {}, delete: {}, count: {} });
    });

    it('lists every index of a class by the names of fields, and which are unique', async () => {
      const listIndexes = (className: string) => {
        const schema = snapshot.get(className);
        return schema ? store.catalogue.listIndexes(schema) : [];
      };
      const indexes = (await listIndexes('Album')).map((index) => index.fields);
      expect(indexes).toContainEqual(['artist', 'released']);
      if (!ofParse) return;
      expect(await listIndexes('_User')).toContainEqual({
        name: 'username_1',
        fields: ['username'],
        unique: true,
        sparse: true,
      });
    });

    it('knows nothing of a class that does not exist, nor of object members', () => {
      expect(snapshot.get('Nowhere')).toBeUndefined();
      expect(snapshot.get('constructor')).toBeUndefined();
    });

    it('serves the same snapshot until it is notified that classes changed', async () => {
      expect(await store.catalogue.snapshot()).toBe(snapshot);
      store.catalogue.invalidate();
      const renewed = await store.catalogue.snapshot();
      expect(renewed).not.toBe(snapshot);
      expect(renewed.classNames()).toEqual(snapshot.classNames());
    });
  });
}
