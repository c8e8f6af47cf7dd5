import type { CallHistory, CountedWindow } from './call-history.js';
import { roundCost } from './usage.js';
import { Bucket, type CountedBucket, type NameCount, type WindowName, WINDOWS } from './call-statistics.js';

/** The sums of a time. */
interface Figures {
  readonly calls: number;
  readonly refused: number;
  readonly rows: number;
  readonly result_bytes: number;
  readonly tokens: number;
  /** In dollars, by the prices of the policy when the calls were made; 0 without prices. */
  readonly cost: number;
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
  /** Of the refused ones: a person decided so. */
  readonly denied_agents: Readonly<Record<string, number>>;
}

type Named<Member extends keyof NameCount> = Pick<NameCount, Member> & { readonly name: string };

/** Calls over time, of one replica or of all. */
export interface Overview {
  readonly window: WindowName;
  readonly bucket_seconds: number;
  readonly from: string;
  readonly to: string;
  /** `replicas`: summed over all. `replica`: of the one that answers. */
  readonly scope: 'replica' | 'replicas';
  readonly replica: string;
  /** ISO 8601: nothing before it was counted. */
  readonly counted_since: string;
  /** The shared state cannot be reached: these are the calls of the replica that answers, from its start on. */
  readonly degraded: boolean;
  readonly totals: Figures & { readonly embed_tokens: number; readonly sign_ins_refused: number };
  readonly gates: readonly Named<'refused'>[];
  readonly agents: readonly Named<keyof NameCount>[];
  readonly classes: readonly Named<'calls' | 'refused'>[];
  readonly tools: readonly Named<'calls' | 'refused'>[];
  readonly buckets: readonly OverviewBucket[];
}

/** Names of each kind in one bucket of an answer. */
const BUCKET_NAMES = 8;
/** Milliseconds that an overview is given again. */
const OVERVIEW_LIFETIME = 2_000;

export interface OverviewOptions {
  /** Id of this process. */
  readonly replica: string;
  readonly reach: 'process' | 'replicas';
  readonly now?: () => number;
  /** Milliseconds. Default `OVERVIEW_LIFETIME`. */
  readonly kept?: number;
}

/** Calls over time as the page shows them. */
export class Overviews {
  private readonly now: () => number;
  private readonly latest = new Map<
    WindowName,
    { readonly at: number; readonly overview: Promise<Overview> }
  >();

  constructor(
    private readonly history: Pick<CallHistory, 'read'>,
    private readonly options: OverviewOptions,
  ) {
    this.now = options.now ?? Date.now;
  }

  read(window: WindowName): Promise<Overview> {
    const known = this.latest.get(window);
    // A clock that was set back must not keep an old one.
    if (known && Math.abs(this.now() - known.at) < (this.options.kept ?? OVERVIEW_LIFETIME))
      return known.overview;
    const overview = this.history.read(window).then((counted) => this.sumFigures(window, counted));
    this.latest.set(window, { at: this.now(), overview });
    overview.catch(() => this.latest.delete(window));
    return overview;
  }

  private sumFigures(window: WindowName, { buckets, since, degraded }: CountedWindow): Overview {
    const { buckets: count, seconds } = WINDOWS[window];
    const last = Math.floor(this.now() / 1000 / seconds);
    const total = new Bucket();
    for (const one of buckets.values()) total.merge(one);
    const sums = total.countNames();
    return {
      window,
      bucket_seconds: seconds,
      from: toTime(last - count + 1, seconds),
      to: toTime(last + 1, seconds),
      scope: this.options.reach === 'replicas' && !degraded ? 'replicas' : 'replica',
      replica: this.options.replica,
      counted_since: new Date(since).toISOString(),
      degraded,
      totals: {
        ...toFigures(total, sums),
        embed_tokens: sums.embedTokens,
        sign_ins_refused: sums.signIns,
      },
      gates: listNames(sums.gates, ({ refused }) => ({ refused })),
      agents: listNames(sums.agents, (one) => ({ ...one, cost: roundCost(one.cost) })),
      classes: listNames(sums.classes, ({ calls, refused }) => ({ calls, refused })),
      tools: listNames(sums.tools, ({ calls, refused }) => ({ calls, refused })),
      buckets: Array.from({ length: count }, (_, index) => {
        const number = last - count + 1 + index;
        return toShownBucket(toTime(number, seconds), buckets.get(number));
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
    cost: roundCost(sums.cost),
    p50_ms: bucket.percentile(0.5),
    p95_ms: bucket.percentile(0.95),
  };
}

function toShownBucket(at: string, counted: CountedBucket | undefined): OverviewBucket {
  const bucket = new Bucket();
  if (counted) bucket.merge(counted);
  const sums = bucket.countNames(BUCKET_NAMES);
  const column = (names: Readonly<Record<string, NameCount>>, member: 'calls' | 'refused' | 'denied') =>
    Object.fromEntries(
      Object.entries(names).flatMap(([name, count]) => (count[member] > 0 ? [[name, count[member]]] : [])),
    );
  return {
    at,
    ...toFigures(bucket, sums),
    gates: column(sums.gates, 'refused'),
    agents: column(sums.agents, 'calls'),
    refused_agents: column(sums.agents, 'refused'),
    denied_agents: column(sums.agents, 'denied'),
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
