import type { OnModuleDestroy } from '@nestjs/common';
import { type SharedState, SharedStateUnavailable, type VersionedStore } from '#state';
import {
  Bucket,
  type CallStatistics,
  type CountedBucket,
  type WindowName,
  WINDOWS,
} from './call-statistics.js';

/** Milliseconds between two writes of what was counted. */
const WRITE_INTERVAL = 5_000;
/** Attempts to change a bucket that other replicas change as well. */
const MOST_ATTEMPTS = 10;
/** Id of the record that says from when on calls are counted; it lives as long as the longest window. */
const SINCE = 'since';
const SINCE_TTL = 8 * 86_400_000;

/** What is known of a window. */
export interface CountedWindow {
  /** By number; without those in which nothing was. */
  readonly buckets: ReadonlyMap<number, CountedBucket>;
  /** Milliseconds since 1970: nothing before it was counted. */
  readonly since: number;
  /** The shared state cannot be reached: of this process alone, from its start on. */
  readonly degraded: boolean;
}

const NAMES = Object.keys(WINDOWS) as WindowName[];

/**
 * Calls over time, of all replicas: each adds what it counted to buckets in the shared state, where they outlive it. Without
 * shared state it is what this process counted.
 */
export class CallHistory implements OnModuleDestroy {
  private readonly store: VersionedStore | null;
  /** What the shared state does not have yet. */
  private readonly pending = new Map<
    string,
    { readonly endsAt: number; readonly ttl: number; bucket: Bucket }
  >();
  private readonly timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> | null = null;
  private since: number | null = null;
  /** When everything counted before was stored. Until then: the start of this process. */
  private storedAt: number;

  constructor(
    private readonly statistics: CallStatistics,
    { history, reach }: Pick<SharedState, 'history' | 'reach'>,
    private readonly now: () => number = Date.now,
  ) {
    this.store = reach === 'replicas' ? history : null;
    this.storedAt = statistics.since;
    if (!this.store) return;
    statistics.collectFresh();
    this.timer = setInterval(() => void this.write().catch(() => undefined), WRITE_INTERVAL).unref();
  }

  async read(window: WindowName): Promise<CountedWindow> {
    const { store } = this;
    if (!store) return this.readOwn(window, false);
    try {
      await this.write();
      const { buckets: count, seconds } = WINDOWS[window];
      const last = Math.floor(this.now() / 1000 / seconds);
      const numbers = Array.from({ length: count }, (_, index) => last - index);
      const found = await Promise.all(numbers.map((number) => store.find(toId(window, number))));
      const buckets = found.flatMap((record, index) =>
        record ? [[numbers[index] as number, record.value as unknown as CountedBucket] as const] : [],
      );
      return { buckets: new Map(buckets), since: this.since ?? this.now(), degraded: false };
    } catch (error) {
      if (error instanceof SharedStateUnavailable) return this.readOwn(window, true);
      throw error;
    }
  }

  /** Writes what is left: other replicas, and this one after its restart, know it then. */
  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    if (this.store) await this.write().catch(() => undefined);
  }

  /** @throws SharedStateUnavailable; what was not written is kept and written later */
  private write(): Promise<void> {
    this.writing ??= this.writeOnce().finally(() => (this.writing = null));
    return this.writing;
  }

  private async writeOnce(): Promise<void> {
    const gatheredAt = this.now();
    this.gatherPending();
    await this.keepBeginning();
    for (const [id, { bucket, endsAt, ttl }] of this.pending) {
      if (endsAt + ttl > this.now()) await this.add(id, bucket, ttl);
      this.pending.delete(id);
    }
    this.storedAt = gatheredAt;
  }

  private gatherPending(): void {
    for (const [minute, fresh] of this.statistics.takeFresh())
      for (const window of NAMES) {
        const { buckets, seconds } = WINDOWS[window];
        const number = Math.floor((minute * 60) / seconds);
        const id = toId(window, number);
        const known = this.pending.get(id);
        const bucket = known?.bucket ?? new Bucket();
        bucket.merge(fresh.countNames());
        if (!known)
          this.pending.set(id, {
            bucket,
            endsAt: (number + 1) * seconds * 1000,
            ttl: buckets * seconds * 1000,
          });
      }
  }

  /** Where the record is missing that was there, the shared state was lost, and with it what was stored. */
  private async keepBeginning(): Promise<void> {
    const store = this.store as VersionedStore;
    const found = await store.find(SINCE);
    const at = found?.value['at'];
    if (found && typeof at === 'number' && Number.isSafeInteger(at)) {
      this.since = at;
      await store.replace(SINCE, found.revision, found.value, SINCE_TTL);
    } else if (await store.create(SINCE, { at: this.storedAt }, SINCE_TTL)) this.since = this.storedAt;
  }

  private async add(id: string, bucket: Bucket, ttl: number): Promise<void> {
    const store = this.store as VersionedStore;
    const counted = bucket.countNames();
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      const found = await store.find(id);
      if (!found) {
        if (await store.create(id, { ...counted }, ttl)) return;
        continue;
      }
      const sum = new Bucket();
      sum.merge(found.value as unknown as CountedBucket);
      sum.merge(counted);
      if (await store.replace(id, found.revision, { ...sum.countNames() }, ttl)) return;
    }
    throw new SharedStateUnavailable('a bucket of the history is changed all the time');
  }

  private readOwn(window: WindowName, degraded: boolean): CountedWindow {
    const own = [...this.statistics.recent(window)];
    const buckets = new Map(own.map(([number, bucket]) => [number, bucket.countNames()]));
    return { buckets, since: this.statistics.since, degraded };
  }
}

const toId = (window: WindowName, number: number): string => `${window} ${number}`;
