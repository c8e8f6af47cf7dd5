import {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  CollectionAuditTrail,
  FilesAuditTrail,
} from '#audit';
import { loadConfig } from '#config';
import { auditCollections, auditFiles } from './audit-sources.js';
import { withConfig } from './named-config.js';
import { UsageError } from './usage-error.js';
import { textTable } from './text-table.js';

export interface SearchOptions extends Omit<AuditQuery, 'limit' | 'type' | 'outcome'> {
  readonly config?: string;
  readonly json?: boolean;
  readonly limit: string;
  readonly type?: string;
  readonly outcome?: string;
}

/** Finds records in files that are named, else in the configured database, else in the configured files. */
export async function runAuditSearch(
  files: readonly string[],
  { config: file, json, ...asked }: SearchOptions,
): Promise<void> {
  const { config } = loadConfig(withConfig(file));
  if (asked.outcome !== undefined && asked.outcome !== 'success' && asked.outcome !== 'failure')
    throw new UsageError('--outcome: expected success or failure');
  const query = { ...asked, limit: Number(asked.limit) } as AuditQuery;
  const collections = files.length === 0 ? auditCollections(config) : [];
  try {
    const [first] = collections;
    const trail = first
      ? new CollectionAuditTrail(first)
      : new FilesAuditTrail(auditFiles(files, config.audit));
    const page = await trail.search(query);
    process.stdout.write(json ? `${JSON.stringify(page, null, 2)}\n` : describe(page));
  } finally {
    await Promise.all(collections.map((collection) => collection.close()));
  }
}

const HEADER = ['TIME', 'TYPE', 'AGENT', 'TENANT', 'WHAT', 'OUTCOME', 'GATE', 'ROWS', 'MS', 'CORRELATION'];

function describe({ entries, cursor }: AuditPage): string {
  if (entries.length === 0) return 'nothing was found\n';
  const table = textTable(HEADER, entries.map(rowOf));
  return cursor === null ? table : `${table}more: --cursor ${cursor}\n`;
}

function rowOf(entry: AuditEntry): string[] {
  const members = entry as unknown as Readonly<Record<string, unknown>>;
  const cell = (...names: string[]) => {
    const value = names.map((name) => members[name]).find((held) => held !== undefined);
    return typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, 128) : '';
  };
  return [
    entry.at,
    entry.type,
    cell('agent_name', 'replica'),
    cell('tenant_id'),
    cell('tool', 'action', 'remote_address'),
    entry.success ? 'success' : cell('error_code', 'outcome') || 'failure',
    cell('gate'),
    cell('rows'),
    cell('duration_ms'),
    cell('correlation_id'),
  ];
}
