import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Double, Long } from 'bson';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Catalog } from './catalog.js';
import { createDraft, draftNext } from './change.js';
import { normaliseIndex } from './index-spec.js';
import { openJournal } from './journal.js';
import { DocumentStore } from './store.js';

import fc from 'fast-check';

// The machine may be busy: a slow rule is not a broken one.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let folder: string;
let files = 0;

beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'embedded-journal-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const newFile = (): string => join(folder, `data-${(files += 1)}`);

async function openStore(file: string): Promise<DocumentStore> {
  const { journal, catalog } = await openJournal(file);
  return new DocumentStore(journal, catalog);
}

/** Everything a catalog holds, with the exact bytes of each document. */
const content = (catalog: Catalog): unknown =>
  Array.from(catalog.all(), (collection) => ({
    ns: collection.fullName,
    uuid: collection.uuid.toHexString(),
    options: collection.options,
    indexes: collection.indexes.map(({ spec, size }) => ({ spec, size })),
    documents: Array.from(collection.snapshotRecords().range(), ({ raw }) => raw.bytes.toString('hex')),
  }));

const step = fc.record({
  coll: fc.constantFrom('a', 'b'),
  id: fc.nat(8),
  value: fc.oneof(fc.integer(), fc.constantFrom<unknown>(Long.ONE, new Double(1), 'text', null)),
  action: fc.constantFrom('write', 'write', 'write', 'remove', 'drop', 'rename', 'index', 'unindex'),
});

function apply(
  store: DocumentStore,
  { coll, id, value, action }: { coll: string; id: number; value: unknown; action: string },
): void {
  const collection = store.live.obtain('d', coll);
  const { ns, uuid } = collection;
  const present = collection.byId(id);
  if (action === 'write') {
    if (present) store.live.replace(collection, present, draftNext(present, { _id: id, value }), 'update');
    else store.live.insert(collection, createDraft({ _id: id, value }));
  } else if (action === 'remove' && present) store.live.remove(collection, present);
  else if (action === 'drop') {
    store.catalog.drop('d', coll);
    store.publish([{ kind: 'drop', ns, uuid }]);
  } else if (action === 'rename' && !store.catalog.find('d', `${coll}-renamed`)) {
    const to = { db: 'd', coll: `${coll}-renamed` };
    store.catalog.rename(collection, to.db, to.coll);
    store.publish([{ kind: 'rename', ns, uuid, to, dropTarget: false }]);
  } else if (action === 'index') {
    const spec = normaliseIndex({ key: { value: 1 }, name: 'value_1' });
    if (collection.addIndex(spec)) store.publish([{ kind: 'createIndexes', ns, uuid, spec }]);
  } else if (action === 'unindex' && collection.indexes[1]) {
    const { spec } = collection.indexes[1];
    collection.dropIndex(spec.name);
    store.publish([{ kind: 'dropIndexes', ns, uuid, spec }]);
  }
}

describe('the data file', () => {
  it('gives back exactly what was in memory, whatever was done', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const file = newFile();
        const store = await openStore(file);
        for (const one of steps) apply(store, one);
        const before = content(store.catalog);
        await store.journal?.close();
        const reopened = await openStore(file);
        expect(content(reopened.catalog)).toEqual(before);
        await reopened.journal?.close();
      }),
      { numRuns: 30 },
    );
  });

  it('keeps whole changes and cuts off a torn last one', async () => {
    const file = newFile();
    const store = await openStore(file);
    const collection = store.live.obtain('d', 'c');
    store.live.insert(collection, createDraft({ _id: 1 }));
    await store.journal?.sync();
    const whole = statSync(file).size;
    store.live.insert(collection, createDraft({ _id: 2 }));
    await store.journal?.close();
    writeFileSync(file, readFileSync(file).subarray(0, -3));
    const reopened = await openStore(file);
    expect(reopened.catalog.find('d', 'c')?.count).toBe(1);
    await reopened.journal?.close();
    expect(statSync(file).size).toBe(whole);
  });

  it('refuses a file that is damaged before its end, instead of losing what follows', async () => {
    const file = newFile();
    const store = await openStore(file);
    const collection = store.live.obtain('d', 'c');
    for (let id = 0; id < 5; id += 1)
      store.live.insert(collection, createDraft({ _id: id, text: 'x'.repeat(50) }));
    await store.journal?.close();
    const bytes = readFileSync(file);
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = (bytes[middle] ?? 0) ^ 0xff;
    writeFileSync(file, bytes);
    await expect(openStore(file)).rejects.toThrow('damaged');
  });

  it.each(['server: { port: 3001 }\nagents: {}\n', 'short'])(
    'leaves a file of somebody else as it is: %j',
    async (text) => {
      const file = newFile();
      writeFileSync(file, text);
      await expect(openStore(file)).rejects.toThrow(`${file} is no data file of this database`);
      expect(readFileSync(file, 'utf8')).toBe(text);
    },
  );

  it('says of a file that cannot be made what to do', async () => {
    const file = newFile();
    await expect(openStore(join(file, 'data'))).rejects.toThrow(`make the folder ${file} first`);
    await expect(openStore(dirname(file))).rejects.toThrow('is a folder: name a file in it');
  });

  it('belongs to one process at a time, and to the next one after a crash', async () => {
    const file = newFile();
    const store = await openStore(file);
    await expect(openStore(file)).rejects.toThrow('in use');
    await store.journal?.close();
    // No process has this number: its owner is gone.
    writeFileSync(`${file}.lock`, '999999999');
    await (await openStore(file)).journal?.close();
    // This process has the number of the one that crashed, but began later.
    writeFileSync(`${file}.lock`, `${process.pid} 5`);
    await (await openStore(file)).journal?.close();
  });

  it('is rewritten when most of it is history', async () => {
    const file = newFile();
    const store = await openStore(file);
    const collection = store.live.obtain('d', 'c');
    let stored = store.live.insert(collection, createDraft({ _id: 1, text: 'x'.repeat(100_000) }));
    for (let turn = 0; turn < 20; turn += 1) {
      stored = store.live.replace(
        collection,
        stored,
        draftNext(stored, { ...stored.document, turn }),
        'update',
      );
    }
    await store.journal?.close();
    const before = statSync(file).size;
    const reopened = await openStore(file);
    expect(statSync(file).size).toBeLessThan(before / 5);
    expect(reopened.catalog.find('d', 'c')?.byId(1)?.document['turn']).toBe(19);
    await reopened.journal?.close();
  });
});
