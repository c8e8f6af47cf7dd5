import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BoundStores, type RowTransactions } from '../changes/row-transactions.js';
import type { RecordReader, RecordWriter } from '../record-adapters.js';
import type { ParseRow } from '../record-store.js';
import { MUSIC_SEED } from './music-seed.js';
import { PATIENT, unhurried } from './operation.js';

export interface OpenTransactions {
  readonly transactions: RowTransactions;
  readonly reader: RecordReader;
  readonly writer: RecordWriter;
  close(): Promise<void>;
}

/** The contract of every adapter with transactions. @param open a store that contains only the given seed */
export function rowTransactionsContract(
  name: string,
  open: (seed: unknown) => Promise<OpenTransactions>,
): void {
  describe(`${name} runs transactions`, PATIENT, () => {
    let store: OpenTransactions;
    beforeEach(async () => {
      store = await open(MUSIC_SEED);
    });
    afterEach(() => store.close());

    const run = <T>(work: (stores: BoundStores) => Promise<T>) =>
      store.transactions.run('Album', unhurried(), work);
    const find = async (objectId: string): Promise<ParseRow | undefined> =>
      (await store.reader.find({ className: 'Album', where: { objectId }, limit: 1 }, unhurried()))[0];
    const retitle = ({ writes }: BoundStores, objectId: string, title: string) =>
      writes.run(
        { kind: 'update', className: 'Album', objectId, fields: { title }, where: {} },
        unhurried(),
        'operator',
      );
    const imageOf = (objectId: string) => store.transactions.images.read('Album', objectId, unhurried());

    it('lacks nothing for them', async () => {
      expect(await store.transactions.findObstacle('Album', unhurried())).toBe(null);
    });

    it('applies all writes at its end, and shows none of them before', async () => {
      await run(async (stores) => {
        await retitle(stores, 'a1', 'One');
        await retitle(stores, 'a2', 'Two');
        const [inside] = await stores.reads.run(
          { kind: 'find', className: 'Album', where: { objectId: 'a1' }, limit: 1 },
          unhurried(),
          'operator',
        );
        expect(inside).toMatchObject({ title: 'One' });
        expect((await find('a1'))?.['title']).not.toBe('One');
      });
      expect(await find('a1')).toMatchObject({ title: 'One' });
      expect(await find('a2')).toMatchObject({ title: 'Two' });
    });

    it('applies none when its work fails, and throws what the work threw', async () => {
      const before = await imageOf('a1');
      const failure = new Error('no');
      const failed = run(async (stores) => {
        await retitle(stores, 'a1', 'One');
        throw failure;
      });
      await expect(failed).rejects.toBe(failure);
      expect(await imageOf('a1')).toBe(before);
    });

    it('lets two that change one row follow each other', async () => {
      const add = async (stores: BoundStores, tag: string) => {
        const [row] = await stores.reads.run(
          { kind: 'find', className: 'Album', where: { objectId: 'a1' }, limit: 1 },
          unhurried(),
          'operator',
        );
        await retitle(stores, 'a1', `${String(row?.['title'])}${tag}`);
      };
      await store.writer.update('Album', 'a1', { title: '' }, {}, unhurried());
      await Promise.all([run((stores) => add(stores, 'x')), run((stores) => add(stores, 'y'))]);
      expect(['xy', 'yx']).toContain((await find('a1'))?.['title']);
    });

    it('puts a row back byte for byte', async () => {
      const before = await imageOf('a1');
      await store.writer.update('Album', 'a1', { tags: { __op: 'Delete' }, title: 'x' }, {}, unhurried());
      const now = await imageOf('a1');
      expect(now).not.toBe(before);
      const row = { className: 'Album', objectId: 'a1', where: {} };
      await run(({ images }) => images.replace(row, now, before, unhurried()));
      expect(await imageOf('a1')).toBe(before);
    });

    it('puts a deleted row back with its id and times, and deletes a new one', async () => {
      const before = await imageOf('a1');
      const known = await find('a1');
      await store.writer.delete('Album', 'a1', {}, unhurried());
      const row = { className: 'Album', objectId: 'a1', where: {} };
      await run(({ images }) => images.replace(row, null, before, unhurried()));
      expect(await find('a1')).toEqual(known);
      await run(({ images }) => images.replace(row, before, null, unhurried()));
      expect(await imageOf('a1')).toBe(null);
    });

    it('replaces and deletes no row that is not what it has to be', async () => {
      const now = await imageOf('a1');
      const row = { className: 'Album', objectId: 'a1', where: { title: 'Another' } };
      for (const image of [await imageOf('a1'), null])
        await expect(run(({ images }) => images.replace(row, now, image, unhurried()))).rejects.toMatchObject(
          { name: 'StoreError', code: 'rejected' },
        );
      expect(await imageOf('a1')).toBe(now);
    });

    it('puts no row back over another one', async () => {
      const before = await imageOf('a1');
      await store.writer.update('Album', 'a1', { title: 'Other' }, {}, unhurried());
      const now = await imageOf('a1');
      const row = { className: 'Album', objectId: 'a1', where: {} };
      const failed = run(({ images }) => images.replace(row, null, before, unhurried()));
      await expect(failed).rejects.toMatchObject({ code: 'duplicate' });
      expect(await imageOf('a1')).toBe(now);
    });

    it('knows the row that it wrote as it was and as it is, byte for byte', async () => {
      const was = await imageOf('a1');
      const changes = [
        { title: 'Left', tags: { __op: 'Delete' }, released: { __op: 'Delete' } },
        { tags: ['x'], title: 'Both', released: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' } },
        { tags: { __op: 'Add', objects: ['y'] }, title: 'Added' },
      ];
      let before = was;
      for (const fields of changes) {
        const { written } = await run(async (stores) => {
          expect(() => stores.written).toThrow('no row was written');
          await stores.writes.run(
            { kind: 'update', className: 'Album', objectId: 'a1', fields, where: {} },
            unhurried(),
            'operator',
          );
          return { written: stores.written };
        });
        expect(written).toEqual({ before, after: await imageOf('a1') });
        before = written.after;
      }
      const made = await run(async (stores) => {
        const fields = { title: 'Made' };
        await stores.writes.run(
          { kind: 'create', className: 'Album', fields, objectId: 'made' },
          unhurried(),
          'operator',
        );
        return stores.written;
      });
      expect(made).toEqual({ before: null, after: await imageOf('made') });
      const gone = await run(async (stores) => {
        const asked = { kind: 'delete', className: 'Album', objectId: 'made', where: {} } as const;
        await stores.writes.run(asked, unhurried(), 'operator');
        return stores.written;
      });
      expect(gone).toEqual({ before: made.after, after: null });
    });

    it('applies a last write with its end, or nothing where the id of a new row is taken', async () => {
      await store.transactions.findObstacle('Album', unhurried());
      const create = (objectId: string) =>
        run(async (stores) => {
          await retitle(stores, 'a2', objectId);
          return stores.lastWrite.run(
            { kind: 'create', className: 'Album', fields: { title: 'Last' }, objectId },
            unhurried(),
            'operator',
          );
        });
      const taken = create('a1');
      await expect(taken).rejects.toMatchObject({ name: 'StoreError', code: 'duplicate' });
      expect((await find('a2'))?.['title']).not.toBe('a1');
      expect(await create('last')).toMatchObject({ objectId: 'last', title: 'Last' });
      expect(await find('last')).toMatchObject({ title: 'Last' });
    });

    it('finds the rows of some ids that meet a constraint', async () => {
      const { images } = store.transactions;
      const found = await images.find('Album', ['a1', 'a2', 'nobody'], {}, unhurried());
      expect([...found.keys()].toSorted()).toEqual(['a1', 'a2']);
      expect(found.get('a1')).toBe(await imageOf('a1'));
      const { title } = (await find('a1')) ?? {};
      const narrowed = await images.find('Album', ['a1', 'a2'], { title }, unhurried());
      expect([...narrowed.keys()]).toEqual(['a1']);
    });

    it('tells whether the time of a row and some of its fields are the same', async () => {
      const { images } = store.transactions;
      const before = (await imageOf('a1')) ?? '';
      const { updatedAt } = (await find('a1')) ?? {};
      await store.writer.update('Album', 'a1', { title: 'Other' }, {}, unhurried(), String(updatedAt));
      const silent = (await imageOf('a1')) ?? '';
      expect(await images.areAlike('Album', before, silent, unhurried(), ['state'])).toBe(true);
      expect(await images.areAlike('Album', before, silent, unhurried(), ['title'])).toBe(false);
      expect(await images.areAlike('Album', before, silent, unhurried())).toBe(false);
      expect(await images.areAlike('Album', before, before, unhurried())).toBe(true);
      await store.writer.update('Album', 'a1', { title: 'Third' }, {}, unhurried());
      const later = (await imageOf('a1')) ?? '';
      expect(await images.areAlike('Album', silent, later, unhurried(), ['state'])).toBe(false);
    });

    it('shows an image in the terms of Parse', async () => {
      const { images } = store.transactions;
      expect(await images.toRow('Album', (await imageOf('a1')) ?? '', unhurried())).toEqual(await find('a1'));
      expect(await images.read('Album', 'nobody', unhurried())).toBe(null);
    });
  });
}
