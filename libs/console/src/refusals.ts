import { OTHER_NAMES } from './call-statistics.js';
import type { Overview } from './overview.js';

interface Counts {
  readonly calls: number;
  readonly refused: number;
}

/**
 * Whose calls were mostly refused or failed in the last minutes. The state of the service and the figures of pages follow it. That a
 * person denied a call is no sign of a fault: it counts as a call that passed.
 */
export interface Refusals {
  readonly minutes: number;
  /** ISO 8601: when that time began. */
  readonly from: string;
  /** Of all calls, and the gate that refused most of them; null: most calls passed. */
  readonly all: (Counts & { readonly gate: string | null }) | null;
  /** The one with most refused calls first. */
  readonly agents: readonly (Counts & { readonly name: string })[];
}

/** As the alert on refusals has it, and what a policy that was just loaded does. */
const TIMES = [10, 2] as const;
/** Fewer refused calls are the everyday of agents. */
const FEWEST = 5;

const isMostly = ({ refused, calls }: Counts): boolean => refused >= FEWEST && refused * 2 > calls;

/** @param overview of the last hour: its buckets are minutes */
export function findRefusals(overview: Pick<Overview, 'buckets' | 'from'>): Refusals {
  const found = TIMES.map((minutes) => findWithin(overview, minutes));
  const wrong = found.find(({ all }) => all) ?? found.find(({ agents }) => agents.length > 0);
  return wrong ?? (found[0] as Refusals);
}

function findWithin({ buckets, from }: Pick<Overview, 'buckets' | 'from'>, minutes: number): Refusals {
  const last = buckets.slice(-minutes);
  const denied = sumNames(last.map(({ denied_agents: names }) => names));
  const allDenied = sum([...denied.values()]);
  const all = {
    calls: sum(last.map(({ calls }) => calls)),
    refused: sum(last.map(({ refused }) => refused)) - allDenied,
  };
  const called = sumNames(last.map(({ agents }) => agents));
  const refused = sumNames(last.map(({ refused_agents: names }) => names));
  const gates = sumNames([...last.map(({ gates: names }) => names), { approval: -allDenied }]);
  const [gate] = [...gates].toSorted(([, one], [, other]) => other - one);
  return {
    minutes,
    from: last[0]?.at ?? from,
    all: isMostly(all) ? { ...all, gate: gate?.[0] ?? null } : null,
    agents: [...refused]
      .map(([name, count]) => ({
        name,
        calls: called.get(name) ?? count,
        refused: count - (denied.get(name) ?? 0),
      }))
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
