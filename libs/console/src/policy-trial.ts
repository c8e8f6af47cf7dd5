import type { AuditPage, AuditQuery } from '#audit';
import type { JudgedCase, SurfaceChange } from '#dispatcher';
import type { ConfigIssue } from '#config';
import type { ShownChange } from './policy-view.js';

/** Agents and a policy that an operator tries before they are deployed. */
export interface TrialOrder {
  /** YAML with `agents` and `policy`. */
  readonly file: string;
  /** YAML with policy cases, as `parley policy test` reads them; empty: none. */
  readonly tests: string;
  /** What agents did lately; asked once what is tried could be read. */
  readonly collectCalls: () => Promise<SearchedCalls>;
}

/** What would be so under the tried policy. */
export interface PolicyTrial {
  /** Why it could not be served, or the cases not be read; then nothing else was tried. */
  readonly faults: readonly ConfigIssue[];
  readonly widens: boolean;
  readonly changes: readonly ShownChange[];
  /** Changes that are left out. */
  readonly cut: number;
  readonly classes_left_out: number;
  readonly cases: readonly JudgedCase[];
  /** Recorded calls that would be refused, or wait for a person, which they do not now. */
  readonly calls: readonly ChangedGroup[];
  /** What they are of. */
  readonly searched: Omit<SearchedCalls, 'calls'>;
}

/** Successful calls of one agent with one tool on the same classes. */
export interface CallGroup {
  readonly agent: string;
  readonly tool: string;
  readonly class_name: string | null;
  readonly joined_classes: readonly string[];
  readonly calls: number;
  /** ISO 8601. */
  readonly last_at: string;
}

export interface ChangedGroup extends CallGroup {
  readonly would: 'be refused' | 'ask for approval';
}

/** The recorded calls that were looked at. */
export interface SearchedCalls {
  readonly calls: readonly CallGroup[];
  readonly records: number;
  /** The time of the oldest; null: there is none. */
  readonly back_to: string | null;
}

const MOST_RECORDS = 1_000;
const PAGE_SIZE = 200;

/** The latest calls that succeeded, grouped. */
export async function collectCalls(
  trail: { search(query: AuditQuery, signal?: AbortSignal): Promise<AuditPage> },
  signal: AbortSignal,
): Promise<SearchedCalls> {
  const groups = new Map<string, CallGroup>();
  let records = 0;
  let backTo: string | null = null;
  let cursor: string | undefined;
  do {
    const page = await trail.search(
      { type: 'tool_call', outcome: 'success', limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) },
      signal,
    );
    for (const entry of page.entries) {
      if (entry.type !== 'tool_call') continue;
      records += 1;
      backTo = entry.at;
      const { agent_name: agent, tool, class_name: className = null, joined_classes: joined = [] } = entry;
      const key = JSON.stringify([agent, tool, className, joined]);
      const known = groups.get(key);
      groups.set(key, {
        agent,
        tool,
        class_name: className,
        joined_classes: joined,
        calls: (known?.calls ?? 0) + 1,
        // The newest come first.
        last_at: known?.last_at ?? entry.at,
      });
    }
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined && records < MOST_RECORDS);
  return { calls: [...groups.values()], records, back_to: backTo };
}

/**
 * Which of these calls lose what they need: the tool, the tool on the class, or a class that they join. Fields and rows are
 * not compared, because records hold no arguments.
 */
export function listChangedCalls(
  calls: readonly CallGroup[],
  changes: readonly SurfaceChange[],
): readonly ChangedGroup[] {
  const lost = new Set(
    changes
      .filter(({ effect }) => effect === 'lost')
      .map(({ agent, className, what, name }) => JSON.stringify([agent, what, className ?? null, name])),
  );
  const loses = (...change: readonly (string | null)[]) => lost.has(JSON.stringify(change));
  const isReached = (agent: string, className: string) =>
    !loses(agent, 'reach', className, 'listings, joins and includes');
  return calls.flatMap((call): ChangedGroup[] => {
    const { agent, tool, class_name: className, joined_classes: joined } = call;
    const isRefused =
      loses(agent, 'tool', null, tool) ||
      (className !== null && loses(agent, 'operation', className, tool)) ||
      joined.some((name) => !isReached(agent, name));
    if (isRefused) return [{ ...call, would: 'be refused' }];
    return loses(agent, 'approval', null, tool) ? [{ ...call, would: 'ask for approval' }] : [];
  });
}
