import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RecordReader, RecordWriter } from '../record-adapters.js';
import type { ParseRow, StoreOperation, Writes } from '../record-store.js';
import type { SchemaCatalogue } from '../schema-store.js';
import { MUSIC_SEED } from './music-seed.js';
import { PATIENT, storeErrorCode, unhurried } from './operation.js';

export interface OpenWriter {
  readonly writer: RecordWriter;
  readonly reader: RecordReader;
  readonly catalogue: SchemaCatalogue;
  close(): Promise<void>;
}

export interface WriterCapabilities {
  /** Fields that this store requires for a new user. Default none. */
  readonly newUser?: ParseRow;
  /** Whether columns that a failed write added are removed again. Default true. */
  readonly withdrawsColumns?: boolean;
  /** Whether Parse stores the rows: with rights, defaults, new columns and classes for users. Default true. */
  readonly ofParse?: boolean;
}

/** The contract of every record writer. @param open a store that contains only the given seed */
export function recordWriterContract(
  name: string,
  open: (seed: unknown) => Promise<OpenWriter>,
  { newUser = {}, withdrawsColumns = true, ofParse = true }: WriterCapabilities = {},
): void {
  describe(`${name} writes records`, PATIENT, () => {
    let store: OpenWriter;
    beforeEach(async () => {
      store = await open(MUSIC_SEED);
    });
    afterEach(() => store.close());

    const stored = async (className: string, objectId: unknown): Promise<ParseRow | undefined> =>
      (await store.reader.find({ className, where: { objectId }, limit: 1 }, unhurried()))[0];
    const create = (fields: ParseRow) => store.writer.create('Album', fields, unhurried());
    const update = (fields: ParseRow, where = {}) =>
      store.writer.update('Album', 'a1', fields, where, unhurried());

    it('creates a row with an id of ten letters and digits, time stamps and defaults', async () => {
      const row = await create({ title: 'New' });
      expect(row['objectId']).toMatch(/^[A-Za-z0-9]{10}$/);
      expect(row).toMatchObject({ title: 'New', ...(ofParse && { state: 'draft' }) });
      expect(row['createdAt']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(row['updatedAt']).toBe(row['createdAt']);
      expect(await stored('Album', row['objectId'])).toEqual(row);
    });

    it('stores every type so that it reads back the same', async () => {
      const fields = {
        title: 'All',
        artist: { __type: 'Pointer', className: 'Artist', objectId: 'oak' },
        released: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' },
        tags: ['x', { y: [1, null] }],
        cover: { __type: 'File', name: 'c.png' },
        thumbnail: { __type: 'Bytes', base64: 'AQI=' },
        extra: { when: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' } },
        ...(ofParse && { ACL: { ada: { read: true }, '*': { read: true } } }),
      };
      const { objectId } = await create(fields);
      expect(await stored('Album', objectId)).toMatchObject(fields);
    });

    it('brings operations on a new row down to the value they leave', async () => {
      const row = await create({
        title: 'Ops',
        price: { __op: 'Increment', amount: 3 },
        tags: { __op: 'AddUnique', objects: ['a', 'a', 'b'] },
        extra: { __op: 'Delete' },
      });
      expect(row).toMatchObject({ price: 3, tags: ['a', 'b'] });
      expect(row).not.toHaveProperty('extra');
    });

    it('gives an update the time stamp that it is given, where it takes ids', async () => {
      if (!store.writer.takesObjectIds) return;
      const at = '2031-02-03T04:05:06.789Z';
      const row = await store.writer.update('Album', 'a1', { title: 'At' }, {}, unhurried(), at);
      expect(row?.['updatedAt']).toBe(at);
      const is = { updatedAt: { __type: 'Date', iso: at } };
      expect(await update({ title: 'Later' }, is)).toMatchObject({ title: 'Later' });
      expect(await update({ title: 'Never' }, is)).toBeNull();
    });

    it('applies values and operations to one row and stamps it', async () => {
      const before = await stored('Album', 'a1');
      const rights = ofParse ? { ACL: { bob: { write: true } } } : {};
      const guest = ofParse ? 'x' : { __type: 'Pointer', className: 'Artist', objectId: 'elm' };
      const row = await update({
        title: 'Renamed',
        price: { __op: 'Increment', amount: -3 },
        tags: { __op: 'Remove', objects: ['live'] },
        guests: { __op: 'Add', objects: [guest, guest] },
        extra: { __op: 'Delete' },
        ...rights,
      });
      expect(row).toMatchObject({
        objectId: 'a1',
        title: 'Renamed',
        price: 7,
        tags: ['folk'],
        ...rights,
      });
      expect((row?.['guests'] as unknown[] | undefined)?.slice(-2)).toEqual([guest, guest]);
      expect(row).not.toHaveProperty('extra');
      expect(row?.['createdAt']).toBe(before?.['createdAt']);
      expect(row?.['updatedAt']).not.toBe(before?.['updatedAt']);
      expect(await stored('Album', 'a1')).toEqual(row);
    });

    it('adds members once', async () => {
      const tags = { __op: 'AddUnique', objects: ['folk', 'new'] };
      expect((await update({ tags }))?.['tags']).toEqual(['live', 'folk', 'new']);
    });

    it('runs an operation as the method of its kind does', async () => {
      const run = (write: StoreOperation<Writes>) => store.writer.run(write, unhurried(), 'operator');
      const row = { className: 'Album', objectId: 'a1', where: { price: 10 } };
      expect(await run({ kind: 'update', ...row, fields: { title: 'As data' } })).toMatchObject({
        objectId: 'a1',
      });
      expect(await run({ kind: 'delete', ...row, where: { price: 999 } })).toBe(false);
      expect(await run({ kind: 'delete', ...row })).toBe(true);
    });

    it('changes and deletes only a row that the constraint admits', async () => {
      expect(await update({ title: 'No' }, { price: 999 })).toBeNull();
      expect((await stored('Album', 'a1'))?.['title']).toBe('Album a1');
      expect(await store.writer.delete('Album', 'a1', { price: 999 }, unhurried())).toBe(false);
      expect(await store.writer.delete('Album', 'a1', { price: 10 }, unhurried())).toBe(true);
      expect(await stored('Album', 'a1')).toBeUndefined();
      expect(await store.writer.delete('Album', 'a1', {}, unhurried())).toBe(false);
      expect(await store.reader.count({ className: 'Album', where: {} }, unhurried())).toBe(5);
    });

    it.runIf(ofParse)('gives the class a column for a new field', async () => {
      await create({
        title: 'Wide',
        rating: 4.5,
        critic: { __type: 'Pointer', className: '_User', objectId: 'ada' },
      });
      const fields = (await store.catalogue.snapshot()).get('Album')?.fields;
      expect(fields?.get('rating')).toEqual({ type: 'Number' });
      expect(fields?.get('critic')).toEqual({ type: 'Pointer', targetClass: '_User' });
    });

    it.runIf(ofParse)('makes the class with its first row', async () => {
      const row = await store.writer.create('Review', { stars: 5 }, unhurried());
      expect((await store.catalogue.snapshot()).get('Review')?.fields.get('stars')).toEqual({
        type: 'Number',
      });
      expect(await stored('Review', row['objectId'])).toEqual(row);
    });

    const refused: [string, ParseRow][] = [
      ['a value of another type than its column', { title: 7 }],
      [
        'a pointer to another class than its column',
        { artist: { __type: 'Pointer', className: 'Label', objectId: 'north' } },
      ],
      ['an id of its own choosing', { title: 'x', objectId: 'mine' }],
      ['a creation date', { title: 'x', createdAt: '2020-01-01T00:00:00.000Z' }],
      ['a column of the store', { title: 'x', _rperm: ['*'] }],
      ['a password', { title: 'x', password: 'secret' }],
      ['an operator in a value', { title: 'x', extra: { $inc: 1 } }],
      ['an unknown operation', { title: 'x', price: { __op: 'Multiply', amount: 2 } }],
      ['an operation of another type than its column', { title: { __op: 'Increment', amount: 1 } }],
      ['a bad ACL', { title: 'x', ACL: { '*': { read: 'yes' } } }],
    ];
    it.each(refused)('refuses %s and writes nothing', async (_title, fields) => {
      expect(await storeErrorCode(create(fields))).toBe('invalid_query');
      expect(await storeErrorCode(update(fields))).toBe('invalid_query');
      expect(await store.reader.count({ className: 'Album', where: {} }, unhurried())).toBe(6);
      expect((await stored('Album', 'a1'))?.['title']).toBe('Album a1');
    });

    it('refuses a row without a required field, and to clear one', async () => {
      expect(await storeErrorCode(create({ price: 1 }))).toBe('invalid_query');
      expect(await storeErrorCode(update({ title: null }))).toBe('invalid_query');
      expect(await storeErrorCode(update({ title: { __op: 'Delete' } }))).toBe('invalid_query');
    });

    it.skipIf(ofParse)('refuses a field that is not declared, and a name that is no class', async () => {
      expect(await storeErrorCode(create({ title: 'Wide', rating: 4.5 }))).toBe('invalid_query');
      expect(await storeErrorCode(update({ rating: 4.5 }))).toBe('invalid_query');
      expect(await storeErrorCode(store.writer.create('Review', { stars: 5 }, unhurried()))).toBe(
        'invalid_query',
      );
    });

    it('takes the id that a text determines, once', async () => {
      if (!store.writer.takesObjectIds) return;
      const id = await store.writer.idFor('Album', 'the same text', unhurried());
      expect(await store.writer.idFor('Album', 'the same text', unhurried())).toBe(id);
      const row = await store.writer.create('Album', { title: 'Keyed' }, unhurried(), id);
      expect(row['objectId']).toBe(id);
      const again = store.writer.create('Album', { title: 'Keyed' }, unhurried(), id);
      expect(await storeErrorCode(again)).toBe('duplicate');
    });

    it.runIf(ofParse)('reports a duplicate of a unique field', async () => {
      const again = store.writer.create('_User', { username: 'ada', ...newUser }, unhurried());
      expect(await storeErrorCode(again)).toBe('duplicate');
    });

    it.runIf(withdrawsColumns && ofParse)(
      'leaves no column behind when the write that brought it fails or finds no row',
      async () => {
        const columns = async (className: string) => [
          ...((await store.catalogue.snapshot()).get(className)?.fields.keys() ?? []),
        ];
        const again = store.writer.create('_User', { username: 'ada', shoeSize: 44 }, unhurried());
        expect(await storeErrorCode(again)).toBe('duplicate');
        expect(await columns('_User')).not.toContain('shoeSize');
        expect(await update({ rating: 5 }, { price: 999 })).toBeNull();
        expect(await columns('Album')).not.toContain('rating');
      },
    );

    it.runIf(ofParse)('gives a new user its own row and nobody else', async () => {
      const user = await store.writer.create('_User', { username: 'eve', ...newUser }, unhurried());
      expect(user['ACL']).toEqual({ [String(user['objectId'])]: { read: true, write: true } });
    });

    it('loses none of many changes to one row at once', async () => {
      const raise = () => update({ price: { __op: 'Increment', amount: 1 } });
      const note = (tag: string) => update({ tags: { __op: 'AddUnique', objects: [tag] } });
      await Promise.all(Array.from({ length: 20 }, (_, index) => [raise(), note(`t${index % 5}`)]).flat());
      const row = await stored('Album', 'a1');
      expect(row?.['price']).toBe(30);
      expect(row?.['tags']).toEqual(expect.arrayContaining(['live', 'folk', 't0', 't1', 't2', 't3', 't4']));
      expect(row?.['tags']).toHaveLength(7);
    });

    it('writes nothing when it was cancelled before', async () => {
      const stopped = unhurried({ signal: AbortSignal.abort() });
      expect(await storeErrorCode(store.writer.delete('Album', 'a1', {}, stopped))).toBe('cancelled');
      expect(await stored('Album', 'a1')).toBeDefined();
    });
  });
}
