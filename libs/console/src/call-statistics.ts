import { cutText, isJsonObject, nameOutcome } from '#core';
import { type AuditEvent, type AuditRecord, AuditSink } from '#audit';

/** The windows of the overview: their buckets, and the seconds of each. */
export const WINDOWS = {
  '1h': { buckets: 60, seconds: 60 },
  '24h': { buckets: 96, seconds: 900 },
  '7d': { buckets: 84, seconds: 7_200 },
} as const;
export type WindowName = keyof typeof WINDOWS;

/** Names that are counted apart in one bucket; further ones together, under `OTHER_NAMES`. */
const MAX_NAMES = 32;
/**
 * Names of refused calls alone, of these: names that a caller makes up must not displace those of calls that run.
 */
const MAX_REFUSED_NAMES = 8;
export const OTHER_NAMES = '(other)';

/** Upper ends of the classes of durations grow by a fifth: a percentile is exact to a tenth. */
const BUCKET_GROWTH = 1.2;
const MIN_DURATION = 0.05;
const DURATION_BUCKETS = 90;

const durationClass = (milliseconds: number): number => {
  const place = Math.floor(
    Math.log(Math.max(milliseconds, MIN_DURATION) / MIN_DURATION) / Math.log(BUCKET_GROWTH),
  );
  return Math.min(DURATION_BUCKETS - 1, place);
};

export interface NameCount {
  readonly calls: number;
  readonly refused: number;
  /** Of the refused ones: a person decided so. */
  readonly denied: number;
  readonly rows: number;
  readonly tokens: number;
  /** By the prices of the policy when the calls were made; 0 without prices. */
  readonly cost: number;
}

type Names = Readonly<Record<string, NameCount>>;

/** Sums of one bucket, in a form that replicas send to each other. */
export interface CountedBucket {
  readonly calls: number;
  readonly refused: number;
  readonly rows: number;
  readonly bytes: number;
  readonly tokens: number;
  readonly cost: number;
  readonly embedTokens: number;
  readonly signIns: number;
  /** Class of durations → calls. */
  readonly durations: Readonly<Record<string, number>>;
  readonly gates: Names;
  readonly agents: Names;
  readonly classes: Names;
  readonly tools: Names;
}

type Counted = 'gates' | 'agents' | 'classes' | 'tools';
const COUNTED_MEMBERS: readonly Counted[] = ['gates', 'agents', 'classes', 'tools'];
const SUMS = ['calls', 'refused', 'rows', 'bytes', 'tokens', 'cost', 'embedTokens', 'signIns'] as const;

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/** One bucket, while it is counted. */
export class Bucket {
  private readonly sums: Writable<Pick<CountedBucket, (typeof SUMS)[number]>> = {
    calls: 0,
    refused: 0,
    rows: 0,
    bytes: 0,
    tokens: 0,
    cost: 0,
    embedTokens: 0,
    signIns: 0,
  };
  private readonly durations = new Map<number, number>();
  private readonly names: Record<Counted, Map<string, NameCount>> = {
    gates: new Map(),
    agents: new Map(),
    classes: new Map(),
    tools: new Map(),
  };

  add(entry: AuditRecord): void {
    const refused = entry.success ? 0 : 1;
    const [rows, tokens] = [entry.rows ?? 0, entry.est_input_tokens ?? 0];
    this.sums.calls += 1;
    this.sums.refused += refused;
    this.sums.rows += rows;
    this.sums.bytes += entry.result_size ?? 0;
    const cost = (entry.est_cost_usd ?? 0) + (entry.embed_cost_usd ?? 0);
    this.sums.tokens += tokens;
    this.sums.cost += cost;
    this.sums.embedTokens += entry.embed_tokens ?? 0;
    const duration = durationClass(entry.duration_ms);
    this.durations.set(duration, (this.durations.get(duration) ?? 0) + 1);
    const denied = nameOutcome(entry) === 'denied' ? 1 : 0;
    const count = { calls: 1, refused, denied, rows, tokens, cost };
    if (refused === 1) this.count('gates', entry.gate ?? 'error', count);
    this.count('agents', entry.agent_name, count);
    if (entry.class_name !== undefined) this.count('classes', entry.class_name, count);
    this.count('tools', entry.tool, count);
  }

  addSignIns(count: number): void {
    this.sums.signIns += count;
  }

  /** Adds the sums of another bucket, of this replica or of another. */
  merge(other: CountedBucket): void {
    for (const name of SUMS) this.sums[name] += toNumber(other[name]);
    for (const [duration, calls] of Object.entries(other.durations ?? {})) {
      const place = Math.min(DURATION_BUCKETS - 1, Math.max(0, Math.trunc(Number(duration)) || 0));
      this.durations.set(place, (this.durations.get(place) ?? 0) + toNumber(calls));
    }
    for (const kind of COUNTED_MEMBERS)
      for (const [name, count] of Object.entries(other[kind] ?? {}))
        if (isJsonObject(count)) this.count(kind, name, count);
  }

  /** @param most names of each kind; the others are summed */
  countNames(most = MAX_NAMES): CountedBucket {
    const keepNames = (kind: Counted) => {
      const kept: Record<string, NameCount> = {};
      const sorted = [...this.names[kind]].sort(([, a], [, b]) => b.calls - a.calls);
      const first = sorted.filter(([name]) => name !== OTHER_NAMES).slice(0, most);
      const rest = sorted.filter((one) => !first.includes(one));
      for (const [name, count] of first) setName(kept, name, { ...count });
      if (rest.length > 0) setName(kept, OTHER_NAMES, rest.map(([, count]) => count).reduce(sumCounts));
      return kept;
    };
    return {
      ...this.sums,
      durations: Object.fromEntries(this.durations),
      gates: keepNames('gates'),
      agents: keepNames('agents'),
      classes: keepNames('classes'),
      tools: keepNames('tools'),
    };
  }

  /** The duration that a share of the calls did not exceed; null without calls. */
  percentile(share: number): number | null {
    const sorted = [...this.durations].sort(([a], [b]) => a - b);
    let left = sorted.reduce((sum, [, calls]) => sum + calls, 0) * share;
    for (const [duration, calls] of sorted) {
      left -= calls;
      if (left <= 1e-9) return Math.round(MIN_DURATION * BUCKET_GROWTH ** (duration + 0.5) * 100) / 100;
    }
    return null;
  }

  private count(kind: Counted, written: string, added: NameCount): void {
    const names = this.names[kind];
    let name = cutText(written, 128);
    if (!names.has(name) && !this.hasPlace(kind, names, toNumber(added.refused) >= toNumber(added.calls)))
      name = OTHER_NAMES;
    names.set(name, sumCounts(names.get(name) ?? NOTHING, added));
  }

  private hasPlace(kind: Counted, names: ReadonlyMap<string, NameCount>, isRefused: boolean): boolean {
    if (names.size >= MAX_NAMES) return false;
    if (!isRefused || kind === 'gates' || kind === 'agents') return true;
    return [...names.values()].filter(({ calls, refused }) => refused >= calls).length < MAX_REFUSED_NAMES;
  }
}

const NOTHING: NameCount = { calls: 0, refused: 0, denied: 0, rows: 0, tokens: 0, cost: 0 };

/** Figures of another replica may be anything, and of an earlier version be fewer. */
function sumCounts(a: NameCount, b: NameCount): NameCount {
  const member = (name: keyof NameCount) => a[name] + toNumber(b[name]);
  return {
    calls: member('calls'),
    refused: member('refused'),
    denied: member('denied'),
    rows: member('rows'),
    tokens: member('tokens'),
    cost: member('cost'),
  };
}

/** Names are untrusted: none is the prototype. */
function setName(names: Record<string, NameCount>, name: string, value: NameCount): void {
  Object.defineProperty(names, name, { value, enumerable: true, configurable: true, writable: true });
}

function toNumber(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
}

/** The buckets of one window in a ring: a new bucket takes the place of the oldest. */
class Ring {
  private readonly slots: ({ readonly number: number; readonly bucket: Bucket } | undefined)[] = [];

  constructor(private readonly window: { readonly buckets: number; readonly seconds: number }) {}

  at(time: number): Bucket {
    const number = Math.floor(time / 1000 / this.window.seconds);
    const place = number % this.window.buckets;
    const slot = this.slots[place];
    if (slot?.number === number) return slot.bucket;
    const bucket = new Bucket();
    this.slots[place] = { number, bucket };
    return bucket;
  }

  /** The buckets of the window that ends now, by number; without those in which nothing was. */
  recent(time: number): ReadonlyMap<number, Bucket> {
    const last = Math.floor(time / 1000 / this.window.seconds);
    const found = this.slots.flatMap((slot) =>
      slot && slot.number > last - this.window.buckets && slot.number <= last ? [slot] : [],
    );
    return new Map(found.map(({ number, bucket }) => [number, bucket]));
  }
}

/**
 * Counts the calls of this process over time, in bounded memory: some hundred buckets with bounded names, and no value of
 * any call.
 */
export class CallStatistics extends AuditSink {
  private readonly rings: Readonly<Record<WindowName, Ring>> = {
    '1h': new Ring(WINDOWS['1h']),
    '24h': new Ring(WINDOWS['24h']),
    '7d': new Ring(WINDOWS['7d']),
  };
  /** Milliseconds since 1970: nothing before it is counted. */
  readonly since: number;
  /** By minute since 1970: what nobody has taken yet; null while nobody takes it. */
  private fresh: Map<number, Bucket> | null = null;

  constructor(private readonly now: () => number = Date.now) {
    super();
    this.since = now();
  }

  record(entry: AuditRecord): void {
    for (const bucket of this.currentBuckets()) bucket.add(entry);
  }

  override recordEvent(event: AuditEvent): void {
    if (event.type !== 'authentication' || event.success) return;
    for (const bucket of this.currentBuckets()) bucket.addSignIns(1 + (event.suppressed ?? 0));
  }

  /** From now on `takeFresh` is called again and again. */
  collectFresh(): void {
    this.fresh ??= new Map();
  }

  /** What was counted since it was called last, by minute. */
  takeFresh(): ReadonlyMap<number, Bucket> {
    const taken = this.fresh ?? new Map<number, Bucket>();
    if (this.fresh) this.fresh = new Map();
    return taken;
  }

  private currentBuckets(): readonly Bucket[] {
    const time = this.now();
    const buckets = Object.values(this.rings).map((ring) => ring.at(time));
    if (!this.fresh) return buckets;
    const minute = Math.floor(time / 60_000);
    const bucket = this.fresh.get(minute) ?? new Bucket();
    this.fresh.set(minute, bucket);
    return [...buckets, bucket];
  }

  recent(window: WindowName): ReadonlyMap<number, Bucket> {
    return this.rings[window].recent(this.now());
  }
}
