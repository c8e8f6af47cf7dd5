import type { AuditEntry, AuditPage, AuditTrail } from '#audit';
import { lineWriter } from '#tools';

/** What one agent used for one tenant on one day. */
interface UsageRow {
  /** In UTC. */
  readonly day: string;
  readonly agent: string;
  /** Empty: none. */
  readonly tenant: string;
  readonly calls: number;
  readonly refused: number;
  readonly rows: number;
  /** Of results, estimated, and of embeddings. */
  readonly tokens: number;
  /** By the prices of the policy when the calls were made; null: there were none. */
  readonly cost: number | null;
}

/** The use of a time, the earliest day first. */
export interface SummedUsage {
  readonly rows: readonly UsageRow[];
  /** ISO 8601: what is older was not read; null: everything was. */
  readonly cut: string | null;
}

interface UsageLimits {
  /** Searches of the trail: each reads a bounded part of it. */
  readonly searches: number;
  readonly rows: number;
}

/** What a request of an operator may cost. */
export const USAGE_LIMITS: UsageLimits = { searches: 500, rows: 20_000 };

/** Records of one search. */
const PAGE_SIZE = 200;
type Sums = { -readonly [Name in keyof UsageRow]: UsageRow[Name] };

/**
 * Sums the use of a time by day, agent and tenant, from its records.
 * @param from ISO 8601, included
 * @param to not included
 * @throws AuditQueryError
 */
export async function sumUsage(
  trail: Pick<AuditTrail, 'search'>,
  { from, to }: { readonly from: string; readonly to: string },
  limits: UsageLimits = USAGE_LIMITS,
  signal?: AbortSignal,
): Promise<SummedUsage> {
  const sums = new Map<string, Sums>();
  let cursor: string | null = null;
  let oldest = to;
  for (let searches = 0; searches < limits.searches && sums.size <= limits.rows; searches += 1) {
    const query = { from, to, limit: PAGE_SIZE, ...(cursor !== null && { cursor }) };
    const page: AuditPage = await trail.search(query, signal);
    for (const entry of page.entries) addTo(sums, entry);
    oldest = page.entries.at(-1)?.at ?? oldest;
    ({ cursor } = page);
    if (cursor === null) break;
  }
  const order = ({ day, agent, tenant }: UsageRow) => [day, agent, tenant].join('\n');
  return {
    rows: [...sums.values()].sort((a, b) => (order(a) < order(b) ? -1 : 1)),
    cut: cursor === null ? null : oldest,
  };
}

function addTo(sums: Map<string, Sums>, entry: AuditEntry): void {
  // Calls, and exports that were read.
  if (entry.type !== 'tool_call' && entry.type !== 'export_read') return;
  const day = entry.at.slice(0, 10);
  const tenant = entry.tenant_id === undefined ? '' : String(entry.tenant_id);
  const key = JSON.stringify([day, entry.agent_name, tenant]);
  const sum: Sums = sums.get(key) ?? {
    day,
    agent: entry.agent_name,
    tenant,
    calls: 0,
    refused: 0,
    rows: 0,
    tokens: 0,
    cost: null,
  };
  sums.set(key, sum);
  if (entry.type === 'tool_call') sum.calls += 1;
  if (!entry.success) sum.refused += 1;
  sum.rows += entry.rows ?? 0;
  sum.tokens += (entry.est_input_tokens ?? 0) + (entry.embed_tokens ?? 0);
  const { est_cost_usd: read, embed_cost_usd: embedded } = entry;
  if (read !== undefined || embedded !== undefined)
    sum.cost = roundCost((sum.cost ?? 0) + (read ?? 0) + (embedded ?? 0));
}

/** To a millionth, as records have it: sums of fractions are not exact. */
export const roundCost = (cost: number): number => Math.round(cost * 1_000_000) / 1_000_000;

const COLUMNS = ['day', 'agent', 'tenant', 'calls', 'refused', 'rows', 'tokens', 'cost'].map((name) => ({
  header: name,
  path: name,
}));

/** CSV (RFC 4180) that no spreadsheet runs a cell of. Where not everything was read, the last row says so. */
export function usageCsv({ rows, cut }: SummedUsage): string {
  const writer = lineWriter('csv', COLUMNS, { neutralizeFormulas: true });
  const lines = rows.map((row) => writer.line({ ...row }));
  const last = cut === null ? [] : [writer.line({ day: 'cut', agent: `nothing before ${cut} was read` })];
  return [writer.head, ...lines, ...last].join('');
}
