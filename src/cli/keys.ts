import type { AuditTrail } from '#audit';
import { type ListedKey, listKeys, loadConfig } from '#config';
import { auditCollections, openSearchedTrail } from './audit.js';
import { type OutputOptions, withConfig } from './command-options.js';
import { jsonText, textTable } from './text-output.js';

/** A key with the time of its last use; null: the records have none, or there are no records. */
type UsedKey = ListedKey & { readonly last_use: string | null };

/** Lists the rules of `auth`, without what they compare. */
export async function runKeys({ config: file, json }: OutputOptions): Promise<void> {
  const { config } = loadConfig(withConfig(file));
  const collections = auditCollections(config);
  try {
    const hasRecords = collections.length > 0 || config.audit.sinks.some(({ kind }) => kind === 'file');
    const trail = hasRecords ? openSearchedTrail([], collections[0], config.audit) : null;
    const keys = await addLastUse(listKeys(config.auth), trail);
    process.stdout.write(json ? jsonText(keys) : describeKeys(keys, hasRecords));
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
}

async function addLastUse(keys: readonly ListedKey[], trail: AuditTrail | null): Promise<UsedKey[]> {
  const used: UsedKey[] = [];
  // One after the other: each may read all records.
  for (const key of keys)
    used.push({ ...key, last_use: trail && key.name !== null ? await findLastUse(trail, key.name) : null });
  return used;
}

/** What a caller of a key did, in contrast to what it was refused for. */
const USES = ['tool_call', 'export_read', 'operator_action'] as const;

/** When the trail recorded the last call of a caller with that key, its last action as an operator, or its last decision as an approver. */
async function findLastUse(trail: AuditTrail, key: string): Promise<string | null> {
  const pages = await Promise.all([
    ...USES.map((type) => trail.search({ type, key, limit: 1 })),
    trail.search({ type: 'approval', approverKey: key, limit: 1 }),
  ]);
  const times = pages.flatMap(({ entries }) => entries.map(({ at }) => at));
  return times.sort().at(-1) ?? null;
}

const HEADER = ['NAME', 'KIND', 'AGENT', 'EXPIRES', 'LAST USE'];

function describeKeys(keys: readonly UsedKey[], hasRecords: boolean): string {
  const rows = keys.map(({ name, kind, agents, expires_at, expired, last_use }) => [
    name ?? '-',
    kind,
    agents.join(', '),
    expires_at === null ? 'never' : `${expires_at}${expired ? ' (expired)' : ''}`,
    last_use ?? (name === null ? 'unknown: it has no name' : hasRecords ? 'none recorded' : 'unknown'),
  ]);
  const without = hasRecords ? '' : 'The last use is not known: no audit sink can be read (audit.sinks).\n';
  return `${textTable(HEADER, rows)}${without}`;
}
