import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createDraft } from './change.js';
import { loadCatalog, openJournal } from './journal.js';
import { normaliseIndex } from './index-spec.js';
import { DocumentStore, removeExpired } from './store.js';

const now = Date.UTC(2030, 0, 1);
const ago = (seconds: number): Date => new Date(now - seconds * 1000);

describe('removeExpired of a time-series collection', () => {
  it('removes the documents whose own time is over', () => {
    const store = new DocumentStore(undefined);
    const options = { timeseries: { timeField: 'at' }, expireAfterSeconds: 60 };
    const collection = store.live.create('d', 'c', options);
    for (const [_id, at] of Object.entries({ old: ago(61), fresh: ago(59) }))
      store.live.insert(collection, createDraft({ _id, at }));
    removeExpired(store, now);
    expect(Array.from(collection.snapshotRecords().range(), ({ document }) => document['_id'])).toEqual([
      'fresh',
    ]);
  });

  it('removes the old ones of one _id, also where a data file is read again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'embedded-expiry-'));
    const dataFile = join(folder, 'data');
    const { journal, catalog } = await openJournal(dataFile);
    const store = new DocumentStore(journal, catalog);
    const options = { timeseries: { timeField: 'at' }, expireAfterSeconds: 60 };
    const collection = store.live.create('d', 'c', options);
    for (const seconds of [1, 90, 2, 70, 3])
      store.live.insert(collection, createDraft({ _id: 'same', at: ago(seconds), seconds }));
    removeExpired(store, now);
    await journal.close();
    for (const read of [collection, loadCatalog(dataFile).find('d', 'c')])
      expect(
        Array.from(read?.snapshotRecords().range() ?? [], ({ document }) => document['seconds']),
      ).toEqual([1, 2, 3]);
    rmSync(folder, { recursive: true });
  });
});

describe.each([1, -1])('removeExpired over an index of direction %d', (direction) => {
  it('removes what is older than its index allows, and nothing else', () => {
    const store = new DocumentStore(undefined);
    const collection = store.live.obtain('d', 'c');
    collection.addIndex(normaliseIndex({ key: { at: direction }, name: 'ttl', expireAfterSeconds: 60 }));
    const documents = [
      { _id: 'old', at: ago(61) },
      { _id: 'fresh', at: ago(59) },
      { _id: 'one of several is old', at: [ago(1), ago(100)] },
      { _id: 'no date', at: 5 },
      { _id: 'text', at: 'yesterday' },
      { _id: 'no field' },
    ];
    for (const document of documents) store.live.insert(collection, createDraft(document));
    removeExpired(store, now);
    const left = Array.from(collection.snapshotRecords().range(), ({ document }) => document['_id']);
    expect(left).toEqual(['fresh', 'no date', 'text', 'no field']);
  });
});
