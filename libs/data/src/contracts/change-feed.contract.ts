import fc from 'fast-check';
import type { Observable, Subscription } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChangeFeed, RowChange } from '../change-feed.js';
import type { RecordReader, RecordWriter } from '../record-adapters.js';
import type { ParseRow } from '../record-store.js';
import { MUSIC_SEED } from './music-seed.js';
import { PATIENT, unhurried } from './operation.js';

export interface OpenFeed {
  readonly feed: ChangeFeed;
  readonly writer: RecordWriter;
  readonly reader: RecordReader;
  close(): Promise<void>;
}

/** The contract of every change feed. @param open a store that contains only the given seed */
export function changeFeedContract(name: string, open: (seed: unknown) => Promise<OpenFeed>): void {
  describe(`${name} reports changes`, PATIENT, () => {
    let store: OpenFeed;
    let subscriptions: Subscription[];
    beforeEach(async () => {
      store = await open(MUSIC_SEED);
      subscriptions = [];
    });
    afterEach(async () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
      await store.close();
    });

    const collect = (changes: Observable<RowChange>): RowChange[] => {
      const seen: RowChange[] = [];
      subscriptions.push(changes.subscribe((change) => seen.push(change)));
      return seen;
    };
    const until = (condition: () => boolean) =>
      vi.waitFor(() => expect(condition()).toBe(true), { timeout: 30_000, interval: 20 });

    /** A feed reports changes from the moment it first emits. */
    const waitForListening = async (className: string, fields: ParseRow): Promise<RowChange[]> => {
      const seen = collect(store.feed.changes(className));
      await vi.waitFor(
        async () => {
          await store.writer.create(className, fields, unhurried());
          expect(seen.length).toBeGreaterThan(0);
        },
        { timeout: 30_000, interval: 50 },
      );
      return seen;
    };

    it('misses nothing from the moment it says that it listens', async () => {
      const seen = collect(store.feed.changes('Label'));
      await store.feed.waitForListening();
      const first = await store.writer.create('Label', { name: 'first' }, unhurried());
      const others = collect(store.feed.changes('Artist'));
      await store.feed.waitForListening();
      const second = await store.writer.create('Artist', { name: 'second' }, unhurried());
      const third = await store.writer.create('Label', { name: 'third' }, unhurried());
      await until(() => seen.length === 2 && others.length === 1);
      expect(seen.map((change) => change.objectId)).toEqual([first['objectId'], third['objectId']]);
      expect(others.map((change) => change.objectId)).toEqual([second['objectId']]);
    });

    it('carries creations, updates and deletions with the row in Parse form', async () => {
      const seen = await waitForListening('Label', { name: 'warm-up' });
      const { objectId } = await store.writer.create('Label', { name: 'East' }, unhurried());
      await store.writer.update('Label', String(objectId), { name: 'West' }, {}, unhurried());
      await store.writer.delete('Label', String(objectId), {}, unhurried());
      const mine = () => seen.filter((change) => change.objectId === objectId);
      await until(() => mine().length === 3);
      expect(mine().map((change) => [change.className, change.kind])).toEqual([
        ['Label', 'create'],
        ['Label', 'update'],
        ['Label', 'delete'],
      ]);
      expect(mine()[0]?.row).toMatchObject({ objectId, name: 'East' });
      expect(mine()[2]?.row).toBeNull();
    });

    it('reports the changes of a class to all who watch it, and to no others', async () => {
      const labels = await waitForListening('Label', { name: 'warm-up' });
      const second = collect(store.feed.changes('Label'));
      const artists = await waitForListening('Artist', { name: 'warm-up' });
      const before = labels.length;
      const { objectId } = await store.writer.create('Label', { name: 'East' }, unhurried());
      await until(() => labels.length > before && second.some((change) => change.objectId === objectId));
      expect(artists.every((change) => change.className === 'Artist')).toBe(true);
      expect(labels.every((change) => change.className === 'Label')).toBe(true);
    });

    it('loses nothing while other classes come and go', async () => {
      const seen = await waitForListening('Label', { name: 'warm-up' });
      const made: unknown[] = [];
      for (let round = 0; round < 5; round += 1) {
        const passing = store.feed.changes(`Passing${round}`).subscribe();
        made.push((await store.writer.create('Label', { name: `n${round}` }, unhurried()))['objectId']);
        passing.unsubscribe();
      }
      await until(() => made.every((objectId) => seen.some((change) => change.objectId === objectId)));
      const received = seen.map((change) => change.objectId).filter((objectId) => made.includes(objectId));
      expect(received).toEqual(made);
    });

    it('rebuilds the class when its changes are replayed', async () => {
      const seen = await waitForListening('Label', { name: 'warm-up' });
      const step = fc.record({
        kind: fc.constantFrom('create', 'update', 'delete'),
        which: fc.nat(20),
        name: fc.string({ maxLength: 5 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
          await play(steps);
          const marker = await store.writer.create('Label', { name: 'marker' }, unhurried());
          await until(() => seen.some((change) => change.objectId === marker['objectId']));
          const known = new Set(seen.map((change) => change.objectId));
          const rows = await store.reader.find({ className: 'Label', where: {}, limit: 1000 }, unhurried());
          expect(replayed(seen)).toEqual(byId(rows.filter((row) => known.has(String(row['objectId'])))));
        }),
        { numRuns: 5 },
      );
    });

    const play = async (steps: readonly { kind: string; which: number; name: string }[]): Promise<void> => {
      const mine: string[] = [];
      for (const { kind, which, name: label } of steps) {
        const target = mine[which % Math.max(mine.length, 1)];
        if (kind === 'create' || target === undefined)
          mine.push(String((await store.writer.create('Label', { name: label }, unhurried()))['objectId']));
        else if (kind === 'update')
          await store.writer.update('Label', target, { name: label }, {}, unhurried());
        else await store.writer.delete('Label', target, {}, unhurried());
      }
    };
  });
}

const byId = (rows: readonly ParseRow[]): Record<string, unknown> =>
  Object.fromEntries(rows.map((row) => [String(row['objectId']), row]));

/** The rows after a sequence of changes. */
function replayed(changes: readonly RowChange[]): Record<string, unknown> {
  const rows = new Map<string, unknown>();
  for (const { kind, objectId, row } of changes) {
    if (kind === 'delete') rows.delete(objectId);
    else if (row) rows.set(objectId, row);
  }
  return Object.fromEntries(rows);
}
