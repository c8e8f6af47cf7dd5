import { finalize, Observable, Subject } from 'rxjs';
import {
  BUDGET_STEPS,
  BudgetStore,
  type BudgetVerdict,
  type DataBudget,
  type DataUse,
  denyExhausted,
  QUANTITIES,
  type Quantity,
} from '#core';
import {
  type BusMessage,
  CLAIM_SHARE,
  type ListedRecord,
  MAX_LISTED_RECORDS,
  MessageBus,
  OneTimeStore,
  RECORD_SHARE,
  SharedStateUnavailable,
  VALUE_SHARE,
  type VersionedRecord,
  VersionedStore,
} from '../ports/stores.js';
import { type Clock, ExpiringMap, MAX_STORED_BYTES, processClock } from './expiring-map.js';

/** One-time values in this process's memory: they serve one process only. */
export class ProcessOneTimeStore extends OneTimeStore {
  private readonly values: ExpiringMap<string>;
  private readonly claims: ExpiringMap<true>;

  /**
   * @param maxEntries values, and separately claims, stored at once. A new value replaces the oldest; a claim is never
   * removed, because a second caller could then claim it: without space, claiming fails. Default 100,000
   * @param maxBytes of all values; the oldest is removed. Default 64 MiB
   * @param shares of each owner: it loses its oldest value, and a further claim is refused
   */
  constructor(
    maxEntries = 100_000,
    now: Clock = processClock,
    maxBytes = MAX_STORED_BYTES,
    shares = { values: VALUE_SHARE, claims: CLAIM_SHARE },
  ) {
    super();
    this.values = new ExpiringMap(maxEntries, now, maxBytes, shares.values);
    this.claims = new ExpiringMap(maxEntries, now, Infinity, shares.claims);
  }

  keep(key: string, value: BusMessage, ttl: number, owner?: string): Promise<void> {
    const text = JSON.stringify(value);
    this.values.set(key, text, ttl, {
      weight: Buffer.byteLength(text),
      ...(owner !== undefined && { owner }),
    });
    return Promise.resolve();
  }

  take(key: string): Promise<BusMessage | undefined> {
    const text = this.values.get(key);
    this.values.delete(key);
    return Promise.resolve(text === undefined ? undefined : (JSON.parse(text) as BusMessage));
  }

  claim(key: string, ttl: number, owner?: string): Promise<boolean> {
    const count = owner === undefined ? {} : { owner };
    if (this.claims.get(key)) return Promise.resolve(false);
    if (this.claims.isFull(count))
      return Promise.reject(new SharedStateUnavailable('no room for another claim'));
    this.claims.put(key, true, ttl, count);
    return Promise.resolve(true);
  }
}

interface Held {
  readonly text: string;
  readonly revision: number;
}

/** Versioned records in this process's memory: they serve one process only. */
export class ProcessVersionedStore extends VersionedStore {
  private readonly records: ExpiringMap<Held>;

  /**
   * @param maxEntries records stored at once; a record is never removed for another: without space, creating fails. Default
   * 10,000
   * @param maxBytes limit for new records; changes of existing records still fit. Default 64 MiB
   * @param share of each owner: a further creation fails; when one of its records grows, its oldest is removed
   */
  constructor(
    maxEntries = 10_000,
    now: Clock = processClock,
    maxBytes = MAX_STORED_BYTES,
    share = RECORD_SHARE,
  ) {
    super();
    this.records = new ExpiringMap(maxEntries, now, maxBytes, share);
  }

  create(id: string, value: BusMessage, ttl: number, owner?: string): Promise<boolean> {
    if (this.records.get(id)) return Promise.resolve(false);
    const text = JSON.stringify(value);
    const count = { weight: Buffer.byteLength(text), ...(owner !== undefined && { owner }) };
    if (this.records.isFull(count))
      return Promise.reject(new SharedStateUnavailable('no room for another record'));
    this.records.put(id, { text, revision: 1 }, ttl, count);
    return Promise.resolve(true);
  }

  find(id: string): Promise<VersionedRecord | undefined> {
    const held = this.records.get(id);
    return Promise.resolve(held && toRecord(held));
  }

  replace(id: string, revision: number, value: BusMessage, ttl: number): Promise<boolean> {
    if (this.records.get(id)?.revision !== revision) return Promise.resolve(false);
    const text = JSON.stringify(value);
    this.records.change(id, { text, revision: revision + 1 }, ttl, Buffer.byteLength(text));
    return Promise.resolve(true);
  }

  remove(id: string): Promise<void> {
    this.records.delete(id);
    return Promise.resolve();
  }

  latest(limit: number): Promise<readonly ListedRecord[]> {
    const found = this.records.latest(Math.min(limit, MAX_LISTED_RECORDS));
    return Promise.resolve(found.map(([id, held]) => ({ id, ...toRecord(held) })));
  }
}

function toRecord({ text, revision }: Held): VersionedRecord {
  return { value: JSON.parse(text) as BusMessage, revision };
}

type Use = Record<Quantity, number>;

const createEmptyUse = (): Use => ({ calls: 0, rows: 0, bytes: 0, databaseTime: 0 });

/** What accounts used, in this process's memory: the counts are for this process only. */
export class ProcessBudgetStore extends BudgetStore {
  /** Per account, what it used in each step, oldest first. */
  private readonly accounts: ExpiringMap<Map<number, Use>>;

  /** @param maxAccounts accounts stored at once; the longest unused is removed first. Default 100,000 */
  constructor(
    maxAccounts = 100_000,
    private readonly now: Clock = processClock,
  ) {
    super();
    this.accounts = new ExpiringMap(maxAccounts, now);
  }

  admit(account: string, budget: DataBudget, counts = true): Promise<BudgetVerdict | null> {
    const steps = this.listSteps(account, budget);
    const looked = counts ? QUANTITIES : QUANTITIES.filter((quantity) => quantity !== 'calls');
    const waits = looked.flatMap((quantity) => this.waitFor(quantity, steps, budget));
    const longest = waits.toSorted((a, b) => b.wait - a.wait)[0];
    if (longest) return Promise.resolve(denyExhausted(budget, longest.quantity, longest.wait / 1000));
    if (counts) this.add(account, budget, { calls: 1 });
    return Promise.resolve(null);
  }

  charge(account: string, budget: DataBudget, use: Partial<DataUse>): Promise<void> {
    this.add(account, budget, use);
    return Promise.resolve();
  }

  readUse(account: string, budget: DataBudget): Promise<DataUse> {
    const sum = createEmptyUse();
    for (const use of this.listSteps(account, budget).values())
      for (const quantity of QUANTITIES) sum[quantity] += use[quantity];
    return Promise.resolve(sum);
  }

  /** Empty unless the quantity is exhausted; else the milliseconds until enough of it has left the window. */
  private waitFor(quantity: Quantity, steps: ReadonlyMap<number, Use>, budget: DataBudget) {
    const limit = budget.limits[quantity];
    let counted = [...steps.values()].reduce((sum, use) => sum + use[quantity], 0);
    if (limit === undefined || counted < limit) return [];
    for (const [step, use] of steps) {
      counted -= use[quantity];
      const wait = (step + 1) * stepLength(budget) + budget.window * 1000 - this.now();
      if (counted < limit) return [{ quantity, wait }];
    }
    return [];
  }

  private add(account: string, budget: DataBudget, use: Partial<DataUse>): void {
    const steps = this.listSteps(account, budget);
    const step = Math.floor(this.now() / stepLength(budget));
    const counted = steps.get(step) ?? createEmptyUse();
    for (const quantity of QUANTITIES) counted[quantity] += Math.ceil(use[quantity] ?? 0);
    steps.set(step, counted);
    this.accounts.set(toKey(account, budget), steps, budget.window * 1000 + stepLength(budget));
  }

  /** What counts in the current window. */
  private listSteps(account: string, budget: DataBudget): Map<number, Use> {
    const steps = this.accounts.get(toKey(account, budget)) ?? new Map<number, Use>();
    const oldest = Math.floor(this.now() / stepLength(budget)) - BUDGET_STEPS;
    for (const step of steps.keys()) if (step < oldest) steps.delete(step);
    return steps;
  }
}

/** Milliseconds. */
const stepLength = ({ window }: DataBudget) => (window * 1000) / BUDGET_STEPS;

/** Each account has its own window: after a change of its length, counting starts again. */
const toKey = (account: string, { window }: DataBudget) => JSON.stringify([account, window]);

/** The listeners of each topic in this process. A topic exists as long as it has a listener. */
export class TopicListeners {
  private readonly topics = new Map<string, Subject<BusMessage>>();

  messages(topic: string): Observable<BusMessage> {
    return new Observable((listener) => {
      const subject = this.topics.get(topic) ?? new Subject<BusMessage>();
      this.topics.set(topic, subject);
      return subject
        .pipe(
          finalize(() => {
            if (!subject.observed && this.topics.get(topic) === subject) this.topics.delete(topic);
          }),
        )
        .subscribe(listener);
    });
  }

  has(topic: string): boolean {
    return this.topics.has(topic);
  }

  publish(topic: string, message: BusMessage): void {
    this.topics.get(topic)?.next(message);
  }

  /** Completes every subscription. */
  close(): void {
    const subjects = Array.from(this.topics.values());
    this.topics.clear();
    for (const subject of subjects) subject.complete();
  }
}

/**
 * A bus within this process: it reaches one process only. Listeners receive a message after `publish` has returned, as over a
 * network.
 */
export class ProcessMessageBus extends MessageBus {
  private readonly listeners = new TopicListeners();

  publish(topic: string, message: BusMessage): Promise<void> {
    const text = JSON.stringify(message);
    setImmediate(() => {
      if (this.listeners.has(topic)) this.listeners.publish(topic, JSON.parse(text) as BusMessage);
    });
    return Promise.resolve();
  }

  messages(topic: string): Observable<BusMessage> {
    return this.listeners.messages(topic);
  }
}
