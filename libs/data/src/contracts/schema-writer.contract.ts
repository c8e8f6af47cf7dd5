import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FieldSchema } from '#policy';
import type { RecordReader, RecordWriter } from '../record-adapters.js';
import type { SchemaCatalogue, SchemaWriter } from '../schema-store.js';
import { MUSIC_SEED } from './music-seed.js';
import { storeErrorCode, unhurried } from './operation.js';

export interface OpenSchemaWriter {
  readonly schemaWriter: SchemaWriter;
  readonly writer: RecordWriter;
  readonly reader: RecordReader;
  readonly catalogue: SchemaCatalogue;
  close(): Promise<void>;
}

const FIELDS = new Map<string, FieldSchema>([
  ['text', { type: 'String' }],
  ['stars', { type: 'Number' }],
  ['album', { type: 'Pointer', targetClass: 'Album' }],
  ['readers', { type: 'Relation', targetClass: '_User' }],
  ['where', { type: 'GeoPoint' }],
]);

/** The contract of every schema writer. @param open a store that contains only the given seed */
export function schemaWriterContract(name: string, open: (seed: unknown) => Promise<OpenSchemaWriter>): void {
  describe(`${name} changes classes`, () => {
    let store: OpenSchemaWriter;
    beforeEach(async () => {
      store = await open(MUSIC_SEED);
    });
    afterEach(() => store.close());

    const classOf = async (className: string) => (await store.catalogue.snapshot()).get(className);
    const createReview = () =>
      store.schemaWriter.createClass({ className: 'Review', fields: FIELDS }, unhurried());
    const deleteClass = (className: string) => store.schemaWriter.deleteClass(className, unhurried());

    it('makes a class with its fields, known at once', async () => {
      await createReview();
      const fields = (await classOf('Review'))?.fields;
      for (const [field, type] of FIELDS) expect(fields?.get(field)).toEqual(type);
      expect([...(fields?.keys() ?? [])]).toEqual(
        expect.arrayContaining(['objectId', 'createdAt', 'updatedAt', 'ACL']),
      );
    });

    it('gives nobody a right to a new class', async () => {
      await createReview();
      expect((await classOf('Review'))?.classLevelPermissions).toMatchObject({
        find: {},
        get: {},
        create: {},
        update: {},
        delete: {},
        addField: {},
      });
    });

    it('makes a class that takes rows', async () => {
      await createReview();
      const album = { __type: 'Pointer', className: 'Album', objectId: 'a1' };
      const row = await store.writer.create('Review', { text: 'Fine', album }, unhurried());
      expect(row).toMatchObject({ text: 'Fine', album });
      const wrong = store.writer.create('Review', { stars: 'five' }, unhurried());
      expect(await storeErrorCode(wrong)).toBe('invalid_query');
    });

    it('does not make a class again', async () => {
      const before = await classOf('Album');
      const again = store.schemaWriter.createClass({ className: 'Album', fields: FIELDS }, unhurried());
      expect(await storeErrorCode(again)).toBe('duplicate');
      expect(await classOf('Album')).toEqual(before);
    });

    it('removes a class without rows, with or without a collection', async () => {
      await createReview();
      expect(await deleteClass('Review')).toBe('deleted');
      expect(await classOf('Review')).toBeUndefined();
      await createReview();
      const row = await store.writer.create('Review', { text: 'x' }, unhurried());
      await store.writer.delete('Review', String(row['objectId']), {}, unhurried());
      expect(await deleteClass('Review')).toBe('deleted');
      expect(await classOf('Review')).toBeUndefined();
    });

    it('leaves a class with rows as it is', async () => {
      const before = await classOf('Album');
      expect(await deleteClass('Album')).toBe('not_empty');
      expect(await classOf('Album')).toEqual(before);
      expect(await store.reader.count({ className: 'Album', where: {} }, unhurried())).toBe(6);
    });

    it('says when there is no such class', async () => {
      expect(await deleteClass('Nowhere')).toBe('absent');
    });

    it('changes nothing when it was cancelled before', async () => {
      const stopped = unhurried({ signal: AbortSignal.abort() });
      const made = store.schemaWriter.createClass({ className: 'Review', fields: FIELDS }, stopped);
      expect(await storeErrorCode(made)).toBe('cancelled');
      expect(await classOf('Review')).toBeUndefined();
    });
  });
}
