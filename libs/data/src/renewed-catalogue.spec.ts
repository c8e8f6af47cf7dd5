import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { IndexSchema, SchemaSnapshot } from '#policy';
import { StoreError } from './record-store.js';
import { ClassSchemas, RenewedCatalogue } from './schema-store.js';

const MAX_AGE = 30_000;

/** Classes in memory, and reads that can fail or stall. */
class SteeredCatalogue extends RenewedCatalogue {
  classes = ['Old'];
  reads = 0;
  answer: 'comes' | 'fails' | 'stalls' = 'comes';
  /** Milliseconds of the clock that a read takes. */
  duration = 0;

  constructor(private readonly clock: { at: number }) {
    super({ maxAge: MAX_AGE, now: () => clock.at });
  }

  listIndexes(): Promise<readonly IndexSchema[]> {
    return Promise.resolve([]);
  }

  protected load(): Promise<SchemaSnapshot> {
    this.reads += 1;
    if (this.answer === 'stalls') return new Promise(() => undefined);
    if (this.answer === 'fails') return Promise.reject(new StoreError('unavailable'));
    const stored = this.classes.map((className) => ({
      className,
      fields: new Map(),
      indexes: [],
      classLevelPermissions: null,
    }));
    this.clock.at += this.duration;
    return Promise.resolve(new ClassSchemas(stored));
  }
}

describe('a snapshot of the classes', () => {
  let clock: { at: number };
  let catalogue: SteeredCatalogue;
  beforeEach(async () => {
    clock = { at: 1_000_000 };
    catalogue = new SteeredCatalogue(clock);
    await catalogue.snapshot();
    catalogue.classes = ['Old', 'New'];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const knowsNew = async () => (await catalogue.snapshot()).get('New') !== undefined;

  it('past its age decides nothing: the first caller waits for the next one', async () => {
    clock.at += MAX_AGE;
    expect(catalogue.snapshotNow()).toBeNull();
    expect(await knowsNew()).toBe(true);
  });

  it.each([75_000, 3_600_000])('is not used after %i ms without a call', async (pause) => {
    clock.at += pause;
    expect(catalogue.snapshotNow()).toBeNull();
  });

  it('is read once for all callers that wait for it', async () => {
    clock.at += MAX_AGE;
    const snapshots = await Promise.all(Array.from({ length: 20 }, () => catalogue.snapshot()));
    expect(new Set(snapshots).size).toBe(1);
    expect(catalogue.reads).toBe(2);
  });

  it('that cannot be renewed refuses everybody, and whoever asks later tries again', async () => {
    clock.at += MAX_AGE;
    catalogue.answer = 'fails';
    await expect(catalogue.snapshot()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(catalogue.snapshot()).rejects.toMatchObject({ code: 'unavailable' });
    catalogue.answer = 'comes';
    expect(await knowsNew()).toBe(true);
  });

  it('whose read stalls is given up, and the next caller reads again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    clock.at += MAX_AGE;
    catalogue.answer = 'stalls';
    const asked = catalogue.snapshot().then(
      () => 'answered',
      (error: StoreError) => error.code,
    );
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await asked).toBe('unavailable');
    catalogue.answer = 'comes';
    expect(await knowsNew()).toBe(true);
  });

  it('in use is renewed ahead of time, so that nobody waits for it', async () => {
    clock.at += MAX_AGE * 0.6;
    expect(catalogue.snapshotNow()).not.toBeNull();
    expect(catalogue.reads).toBe(1);
    clock.at += MAX_AGE * 0.1;
    const before = catalogue.snapshotNow();
    expect(before?.get('New')).toBeUndefined();
    catalogue.snapshotNow();
    await vi.waitFor(() => expect(catalogue.snapshotNow()?.get('New')).toBeDefined());
    expect(catalogue.reads).toBe(2);
  });

  it('is as old as the beginning of its read', async () => {
    catalogue.duration = 5_000;
    catalogue.invalidate();
    await catalogue.snapshot();
    clock.at += MAX_AGE - 5_000;
    expect(catalogue.snapshotNow()).toBeNull();
  });

  it('has no age by a clock that was set back, so it is read again', () => {
    clock.at -= 1;
    expect(catalogue.snapshotNow()).toBeNull();
  });

  describe('that lacks a name', () => {
    it('is read again before it is said that there is none', async () => {
      const known = await catalogue.snapshot();
      expect((await catalogue.lookAgain(known)).get('New')).toBeDefined();
      expect(await knowsNew()).toBe(true);
    });

    it('is read once for a flood of invented names, and then once a second', async () => {
      const flood = async () => {
        const known = await catalogue.snapshot();
        await Promise.all(Array.from({ length: 100 }, () => catalogue.lookAgain(known)));
        for (let asked = 0; asked < 100; asked += 1) await catalogue.lookAgain(await catalogue.snapshot());
      };
      await flood();
      expect(catalogue.reads).toBe(2);
      clock.at += 999;
      await flood();
      expect(catalogue.reads).toBe(2);
      clock.at += 1;
      await flood();
      expect(catalogue.reads).toBe(3);
    });

    it('stays the same snapshot when nothing is found, and does not become younger', async () => {
      catalogue.classes = ['Old'];
      const known = await catalogue.snapshot();
      clock.at += MAX_AGE / 2;
      expect(await catalogue.lookAgain(known)).toBe(known);
      expect(catalogue.reads).toBe(2);
      clock.at += MAX_AGE / 2;
      expect(await catalogue.snapshot()).not.toBe(known);
    });

    it('is not read again for a tenth of the time when that takes long', async () => {
      catalogue.duration = 400;
      await catalogue.lookAgain(await catalogue.snapshot());
      clock.at += 3_999;
      await catalogue.lookAgain(await catalogue.snapshot());
      expect(catalogue.reads).toBe(2);
      clock.at += 1;
      await catalogue.lookAgain(await catalogue.snapshot());
      expect(catalogue.reads).toBe(3);
    });

    it('is not read again where a newer one is known', async () => {
      const old = await catalogue.snapshot();
      clock.at += MAX_AGE;
      const newer = await catalogue.snapshot();
      expect(await catalogue.lookAgain(old)).toBe(newer);
      expect(catalogue.reads).toBe(2);
    });

    it('refuses when it cannot be read again', async () => {
      const known = await catalogue.snapshot();
      catalogue.answer = 'fails';
      await expect(catalogue.lookAgain(known)).rejects.toMatchObject({ code: 'unavailable' });
    });
  });
});
