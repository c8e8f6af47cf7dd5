import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '#core';
import type { RowView } from '#data';
import { ChangedRows, ViewWatch } from './view-watch.js';

const change = fc.record({ objectId: fc.constantFrom('a', 'b', 'c', 'd'), created: fc.boolean() });

describe('the changes of a class', () => {
  it('are those after the number, as far as they are stored, each row once', () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(change), { maxLength: 30 }),
        fc.nat(30),
        fc.integer({ min: 1, max: 8 }),
        (all, from, capacity) => {
          const changes = new ChangedRows(capacity);
          for (const one of all) {
            if (one) changes.add(one);
            else changes.addGap();
          }
          expect(changes.last).toBe(all.length);
          const number = Math.min(from, all.length);
          const since = all.slice(number);
          const remembered = since.slice(-capacity);
          const read = changes.since(number);
          expect(read.ids).toEqual([...new Set(remembered.flatMap((one) => (one ? [one.objectId] : [])))]);
          expect(read.gap).toBe(since.includes(null));
          const lostNone = remembered.length === since.length;
          expect(read.onlyCreated).toBe(lostNone && since.every((one) => one?.created === true));
        },
      ),
    );
  });
});

/** A class of rows in memory, and the view that holds those marked as mine. */
class Rows {
  readonly mine = new Map<string, boolean>();
  readonly changes = new ChangedRows();

  set(objectId: string, mine: boolean): void {
    this.changes.add({ objectId, created: !this.mine.has(objectId) });
    this.mine.set(objectId, mine);
  }

  delete(objectId: string): void {
    if (this.mine.delete(objectId)) this.changes.add({ objectId, created: false });
  }

  get view(): RowView {
    return {
      className: 'Post',
      schema: undefined,
      key: 'mine',
      everything: false,
      declared: {},
      ownersOnly: false,
      holdsAny: (ids) => Promise.resolve(ids.some((id) => this.mine.get(id) === true)),
      size: () => Promise.resolve([...this.mine.values()].filter(Boolean).length),
    };
  }

  visible(): string[] {
    return [...this.mine].filter(([, mine]) => mine).map(([id]) => id);
  }
}

const oneAtOnce = () => new FairQueue({ atOnce: 1, waitingPerKey: Infinity, timeout: 60_000 });

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const step = fc.oneof(fc.record({ set: id, mine: fc.boolean() }), fc.record({ remove: id }));

describe('a view of a class', () => {
  it('never reports a change to a row that is outside it before and after, and always one that is not', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 12 }), async (batches) => {
        const rows = new Rows();
        rows.set('a', true);
        rows.set('b', false);
        const watch = new ViewWatch(rows.changes, oneAtOnce(), rows.changes.last);
        await watch.measure(rows.view, 'ada');
        let seen = rows.changes.last;
        for (const batch of batches) {
          const before = rows.visible();
          const touched = new Set<string>();
          for (const one of batch) {
            const target = 'set' in one ? one.set : one.remove;
            if (rows.mine.get(target) === true || ('set' in one && one.mine)) touched.add(target);
            if ('set' in one) rows.set(target, one.mine);
            else rows.delete(target);
          }
          const after = rows.visible();
          const { shown, judged } = await watch.shows(rows.view, seen, 'ada');
          seen = judged;
          if (shown) expect(touched.size).toBeGreaterThan(0);
          const moved = before.length !== after.length || after.some((row) => touched.has(row));
          if (moved) expect(shown).toBe(true);
          if (touched.size === 0) expect(shown).toBe(false);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('reports nothing that the database cannot determine, and checks it again later', async () => {
    const rows = new Rows();
    const watch = new ViewWatch(rows.changes, oneAtOnce(), 0);
    await watch.measure(rows.view, 'ada');
    rows.set('a', true);
    const broken: RowView = { ...rows.view, holdsAny: () => Promise.reject(new Error('down')) };
    await expect(watch.shows(broken, 0, 'ada')).rejects.toThrow('down');
    expect(await watch.shows(rows.view, 0, 'ada')).toEqual({ shown: true, judged: 1 });
  });

  it('reports a change after a gap, whatever happened', async () => {
    const rows = new Rows();
    const watch = new ViewWatch(rows.changes, oneAtOnce(), 0);
    await watch.measure(rows.view, 'ada');
    rows.changes.addGap();
    expect(await watch.shows(rows.view, 0, 'ada')).toMatchObject({ shown: true });
  });

  it('runs each query once for all watchers that share it', async () => {
    const rows = new Rows();
    const watch = new ViewWatch(rows.changes, oneAtOnce(), 0);
    await watch.measure(rows.view, 'ada');
    let questions = 0;
    const view: RowView = {
      ...rows.view,
      holdsAny: (ids) => {
        questions += 1;
        return rows.view.holdsAny(ids);
      },
    };
    rows.set('a', true);
    const answers = await Promise.all(Array.from({ length: 50 }, () => watch.shows(view, 0, 'ada')));
    expect(answers.every(({ shown }) => shown)).toBe(true);
    expect(questions).toBe(1);
  });
});
