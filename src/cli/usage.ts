import { AuditQueryError } from '#audit';
import { loadConfig } from '#config';
import { sumUsage, type SummedUsage, usageCsv } from '#console';
import { auditCollections, openSearchedTrail } from './audit.js';
import { type OutputOptions, UsageError, withConfig } from './command-options.js';
import { jsonText, textTable } from './text-output.js';

interface UsageOptions extends OutputOptions {
  readonly since: string;
  readonly until?: string;
  readonly csv?: boolean;
}

/** A command reads as far as it must. */
const NO_LIMITS = { searches: Infinity, rows: Infinity };

/** Sums calls, rows, tokens and cost by day, agent and tenant, from the first sink that can be searched. */
export async function runUsage({ since, until, config: file, csv, json }: UsageOptions): Promise<void> {
  if (csv && json) throw new UsageError('--csv and --json: one of them');
  const { config } = loadConfig(withConfig(file));
  const collections = auditCollections(config);
  const to = until ?? new Date().toISOString();
  try {
    const trail = openSearchedTrail([], collections[0], config.audit);
    const usage = await sumUsage(trail, { from: since, to }, NO_LIMITS);
    process.stdout.write(csv ? usageCsv(usage) : json ? jsonText(usage.rows) : describeUsage(usage));
  } catch (error) {
    if (!(error instanceof AuditQueryError)) throw error;
    throw new UsageError(`--${error.message.replace(/^from/, 'since').replace(/^to/, 'until')}`);
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
}

const HEADER = ['DAY', 'AGENT', 'TENANT', 'CALLS', 'REFUSED', 'ROWS', 'TOKENS', 'COST'];

function describeUsage({ rows }: SummedUsage): string {
  if (rows.length === 0) return 'There are no calls in this time.\n';
  const cells = rows.map(({ day, agent, tenant, calls, refused, rows: read, tokens, cost }) => [
    day,
    agent,
    tenant === '' ? '-' : tenant,
    ...[calls, refused, read, tokens, cost ?? '-'].map(String),
  ]);
  return textTable(HEADER, cells);
}
