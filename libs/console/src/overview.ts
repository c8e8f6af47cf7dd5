import { randomUUID } from 'node:crypto';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Subscription } from 'rxjs';
import type { BusMessage, MessageBus } from '#state';
import {
  Bucket,
  type CallStatistics,
  type CountedBucket,
  isMembers,
  type NameCount,
  type WindowName,
  WINDOWS,
} from './call-statistics.js';

/** A process that counts calls. */
interface KnownReplica {
  readonly replica: string;
  readonly name: string;
  /** ISO 8601. */
  readonly since: string;
}

/** The sums of a time. */
interface Figures {
  readonly calls: number;
  readonly refused: number;
  readonly rows: number;
  readonly result_bytes: number;
  readonly tokens: number;
  /** Null where no call has a duration. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

interface OverviewBucket extends Figures {
  /** ISO 8601. */
  readonly at: string;
  /** By name. */
  readonly gates: Readonly<Record<string, number>>;
  readonly agents: Readonly<Record<string, number>>;
  readonly refused_agents: Readonly<Record<string, number>>;
}

type Named<Member extends keyof NameCount> = Pick<NameCount, Member> & { readonly name: string };

/** Calls over time, of one replica or of all. */
export interface Overview {
  readonly window: WindowName;
  readonly bucket_seconds: number;
  readonly from: string;
  readonly to: string;
  /** `replicas`: summed over all that answered. `replica`: of the one that answers. */
  readonly scope: 'replica' | 'replicas';
  readonly replica: string;
  readonly replicas: readonly (KnownReplica & { readonly answered: boolean })[];
  /** Whether every known replica answered in time. */
  readonly complete: boolean;
  readonly totals: Figures & { readonly embed_tokens: number; readonly sign_ins_refused: number };
  readonly gates: readonly Named<'refused'>[];
  readonly agents: readonly Named<keyof NameCount>[];
  readonly classes: readonly Named<'calls' | 'refused'>[];
  readonly tools: readonly Named<'calls' | 'refused'>[];
  readonly buckets: readonly OverviewBucket[];
}

const ASKED_TOPIC = 'console.overview.asked';
const ANSWERED_TOPIC = 'console.overview.answered';
const LEFT_TOPIC = 'console.overview.left';

/** Names of each kind in one bucket of an answer. */
const BUCKET_NAMES = 8;
const MAX_REPLICAS = 64;

interface OverviewSettings {
  /** Milliseconds that replicas have to answer. */
  readonly timeout: number;
  /** Milliseconds that an overview is given again. */
  readonly kept: number;
  /** Milliseconds after which a replica that did not answer is no longer known. */
  readonly forgotten: number;
}

const DEFAULTS: OverviewSettings = { timeout: 500, kept: 2_000, forgotten: 600_000 };

/** The figures of one replica. */
interface ReplicaFigures extends KnownReplica {
  readonly id: string;
  readonly total: CountedBucket;
  readonly buckets: Readonly<Record<string, CountedBucket>>;
}

export interface OverviewOptions {
  /** Of this process. */
  readonly replica: string;
  readonly name: string;
  readonly reach: 'process' | 'replicas';
  readonly now?: () => number;
  readonly settings?: Partial<OverviewSettings>;
}

/**
 * Sums the calls of all replicas: each counts its own, and is asked over the message bus when an operator looks. Nothing is
 * sent while nobody does.
 */
export class Overviews implements OnModuleDestroy {
  private readonly settings: OverviewSettings;
  private readonly now: () => number;
  private readonly listening: Subscription[];
  private readonly known = new Map<string, KnownReplica & { readonly seen: number }>();
  private readonly latest = new Map<
    WindowName,
    { readonly at: number; readonly overview: Promise<Overview> }
  >();

  constructor(
    private readonly statistics: CallStatistics,
    private readonly bus: MessageBus,
    private readonly options: OverviewOptions,
  ) {
    this.settings = { ...DEFAULTS, ...options.settings };
    this.now = options.now ?? Date.now;
    this.listening = [
      bus.messages(ASKED_TOPIC).subscribe((message) => this.answer(message)),
      bus.messages(ANSWERED_TOPIC).subscribe((message) => this.see(message)),
      bus.messages(LEFT_TOPIC).subscribe(({ replica }) => void this.known.delete(String(replica))),
    ];
  }

  read(window: WindowName): Promise<Overview> {
    const known = this.latest.get(window);
    // A clock that was set back must not keep an old one.
    if (known && Math.abs(this.now() - known.at) < this.settings.kept) return known.overview;
    const overview = this.gather(window);
    this.latest.set(window, { at: this.now(), overview });
    overview.catch(() => this.latest.delete(window));
    return overview;
  }

  onModuleDestroy(): void {
    for (const one of this.listening) one.unsubscribe();
    if (this.options.reach === 'replicas')
      void this.bus.publish(LEFT_TOPIC, { replica: this.options.replica }).catch(() => undefined);
  }

  private figures(id: string, window: WindowName): ReplicaFigures {
    const total = new Bucket();
    const buckets: Record<string, CountedBucket> = {};
    for (const [number, bucket] of this.statistics.recent(window)) {
      total.merge(bucket.countNames());
      buckets[number] = bucket.countNames(BUCKET_NAMES);
    }
    const { replica, name } = this.options;
    const since = new Date(this.statistics.since).toISOString();
    return { id, replica, name, since, total: total.countNames(), buckets };
  }

  private answer({ id, window, replica }: BusMessage): void {
    if (typeof id !== 'string' || !isWindow(window) || replica === this.options.replica) return;
    void this.bus.publish(ANSWERED_TOPIC, { ...this.figures(id, window) }).catch(() => undefined);
  }

  private see(message: BusMessage): void {
    const { replica, name, since } = message;
    if (typeof replica !== 'string' || typeof name !== 'string' || typeof since !== 'string') return;
    if (replica === this.options.replica) return;
    this.known.delete(replica);
    this.known.set(replica, { replica, name: name.slice(0, 128), since, seen: this.now() });
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_REPLICAS && oldest !== undefined) this.known.delete(oldest);
  }

  private async gather(window: WindowName): Promise<Overview> {
    const own = this.figures('', window);
    const others = this.options.reach === 'replicas' ? await this.askOthers(window) : [];
    return this.sumFigures(window, [own, ...others]);
  }

  /** Waits for every known replica, as long as it may take. */
  private askOthers(window: WindowName): Promise<ReplicaFigures[]> {
    const id = randomUUID();
    for (const [replica, { seen }] of this.known)
      if (this.now() - seen > this.settings.forgotten) this.known.delete(replica);
    const waiting = new Set(this.known.keys());
    return new Promise((resolve) => {
      const figures = new Map<string, ReplicaFigures>();
      let settled = false;
      const answers = this.bus.messages(ANSWERED_TOPIC).subscribe((message) => {
        const answer = readFigures(message);
        if (answer?.id !== id || figures.size >= MAX_REPLICAS) return;
        figures.set(answer.replica, answer);
        waiting.delete(answer.replica);
        if (waiting.size === 0 && settled) end();
      });
      // Replicas that are not known yet get half of the time.
      const quiet = setTimeout(() => {
        settled = true;
        if (waiting.size === 0) end();
      }, this.settings.timeout / 2);
      const timer = setTimeout(() => end(), this.settings.timeout);
      const end = () => {
        clearTimeout(timer);
        clearTimeout(quiet);
        answers.unsubscribe();
        resolve([...figures.values()]);
      };
      this.bus.publish(ASKED_TOPIC, { id, window, replica: this.options.replica }).catch(end);
    });
  }

  private sumFigures(window: WindowName, figures: readonly ReplicaFigures[]): Overview {
    const { buckets: count, seconds } = WINDOWS[window];
    const last = Math.floor(this.now() / 1000 / seconds);
    const total = new Bucket();
    for (const one of figures) total.merge(one.total);
    const answered = new Set(figures.map(({ replica }) => replica));
    const others = [...this.known.values()].map(({ seen: _seen, ...known }) => known);
    const { replica, name, since } = figures[0] as ReplicaFigures;
    const replicas = [{ replica, name, since }, ...others].map((known) => ({
      ...known,
      answered: answered.has(known.replica),
    }));
    const sums = total.countNames();
    return {
      window,
      bucket_seconds: seconds,
      from: toTime(last - count + 1, seconds),
      to: toTime(last + 1, seconds),
      scope: this.options.reach === 'replicas' ? 'replicas' : 'replica',
      replica,
      replicas,
      complete: replicas.every((known) => known.answered),
      totals: {
        ...toFigures(total, sums),
        embed_tokens: sums.embedTokens,
        sign_ins_refused: sums.signIns,
      },
      gates: listNames(sums.gates, ({ refused }) => ({ refused })),
      agents: listNames(sums.agents, (one) => one),
      classes: listNames(sums.classes, ({ calls, refused }) => ({ calls, refused })),
      tools: listNames(sums.tools, ({ calls, refused }) => ({ calls, refused })),
      buckets: Array.from({ length: count }, (_, index) => {
        const number = last - count + 1 + index;
        return toShownBucket(
          toTime(number, seconds),
          figures.flatMap((one) => one.buckets[number] ?? []),
        );
      }),
    };
  }
}

function toFigures(bucket: Bucket, sums: CountedBucket): Figures {
  return {
    calls: sums.calls,
    refused: sums.refused,
    rows: sums.rows,
    result_bytes: sums.bytes,
    tokens: sums.tokens,
    p50_ms: bucket.percentile(0.5),
    p95_ms: bucket.percentile(0.95),
  };
}

function toShownBucket(at: string, parts: readonly CountedBucket[]): OverviewBucket {
  const bucket = new Bucket();
  for (const part of parts) bucket.merge(part);
  const sums = bucket.countNames();
  const column = (names: Readonly<Record<string, NameCount>>, member: 'calls' | 'refused') =>
    Object.fromEntries(
      Object.entries(names).flatMap(([name, count]) => (count[member] > 0 ? [[name, count[member]]] : [])),
    );
  return {
    at,
    ...toFigures(bucket, sums),
    gates: column(sums.gates, 'refused'),
    agents: column(sums.agents, 'calls'),
    refused_agents: column(sums.agents, 'refused'),
  };
}

const toTime = (number: number, seconds: number): string => new Date(number * seconds * 1000).toISOString();

/** Most first. */
function listNames<Shown extends object>(
  names: Readonly<Record<string, NameCount>>,
  showOperator: (count: NameCount) => Shown,
): (Shown & { readonly name: string })[] {
  return Object.entries(names).map(([name, count]) => ({ name, ...showOperator(count) }));
}

function isWindow(value: unknown): value is WindowName {
  return typeof value === 'string' && Object.hasOwn(WINDOWS, value);
}

/** An answer of another version of Parley may have another form and is ignored. */
function readFigures(message: BusMessage): ReplicaFigures | undefined {
  const { id, replica, name, since, total, buckets } = message;
  const isNamed = [id, replica, name, since].every((text) => typeof text === 'string');
  const isCounted = isMembers(total) && isMembers(buckets) && Object.values(buckets).every(isMembers);
  return isNamed && isCounted ? (message as unknown as ReplicaFigures) : undefined;
}
