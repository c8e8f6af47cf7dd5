import { OTHER_NAMES } from './call-statistics.js';
import type { Overview } from './overview.js';

interface Counts {
  readonly calls: number;
  readonly refused: number;
}

/** Whose calls were mostly refused or failed in the last minutes. The state of the service and the figures of pages follow it. */
export interface Refusals {
  readonly minutes: number;
  /** ISO 8601: when that time began. */
  readonly from: string;
  /** Of all calls, and the gate that refused most of them; null: most calls passed. */
  readonly all: (Counts & { readonly gate: string | null }) | null;
  /** The one with most refused calls first. */
  readonly agents: readonly (Counts & { readonly name: string })[];
}

/** As the alert on refusals has it. */
const MINUTES = 10;
/** Fewer refused calls are the everyday of agents. */
const FEWEST = 5;

const isMostly = ({ refused, calls }: Counts): boolean => refused >= FEWEST && refused * 2 > calls;

/** @param overview of the last hour: its buckets are minutes */
export function findRefusals({ buckets, from }: Pick<Overview, 'buckets' | 'from'>): Refusals {
  const last = buckets.slice(-MINUTES);
  const all = {
    calls: sum(last.map(({ calls }) => calls)),
    refused: sum(last.map(({ refused }) => refused)),
  };
  const called = sumNames(last.map(({ agents }) => agents));
  const refused = sumNames(last.map(({ refused_agents: names }) => names));
  const [gate] = [...sumNames(last.map(({ gates }) => gates))].toSorted(([, one], [, other]) => other - one);
  return {
    minutes: MINUTES,
    from: last[0]?.at ?? from,
    all: isMostly(all) ? { ...all, gate: gate?.[0] ?? null } : null,
    agents: [...refused]
      .map(([name, count]) => ({ name, calls: called.get(name) ?? count, refused: count }))
      .filter((one) => one.name !== OTHER_NAMES && isMostly(one))
      .toSorted((one, other) => other.refused - one.refused),
  };
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

function sumNames(counted: readonly Readonly<Record<string, number>>[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const names of counted)
    for (const [name, count] of Object.entries(names)) sums.set(name, (sums.get(name) ?? 0) + count);
  return sums;
}
