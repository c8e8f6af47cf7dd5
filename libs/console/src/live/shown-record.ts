import type { ApprovalRecord, AuditEvent, AuditRecord } from '#audit';

/** A record as it is watched: names, never values; every text cut. */
export type ShownRecord = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** What of a record is shown, and nothing that a later version adds to it. */
const SHOWN = (
  'type at tool success agent_name principal tenant_id permissions auth_type args_keys gate error_code ' +
  'denial_kind cause duration_ms database_ms rows result_size policy_version correlation_id trace_id ' +
  'approver impersonated_user_id agent_depth outcome via approval_id reason action target ' +
  'remote_address suppressed task_id prompt_injection_phrase identity'
).split(' ');

const MAX_TEXT = 300;
const MAX_NAMES = 32;

type Recorded = (AuditRecord | ApprovalRecord | AuditEvent) & { readonly type: string };

export function shownRecord(entry: Recorded): ShownRecord {
  const fields = entry as unknown as Readonly<Record<string, unknown>>;
  const shown: [string, string | number | boolean | readonly string[]][] = [];
  for (const name of SHOWN) {
    const value = cut(fields[name]);
    if (value !== undefined) shown.push([name, value]);
  }
  return Object.fromEntries(shown);
}

function cut(value: unknown): string | number | boolean | readonly string[] | undefined {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (typeof value === 'number' || typeof value === 'boolean') return value;
  if (!Array.isArray(value)) return undefined;
  return value.slice(0, MAX_NAMES).map((name) => String(name).slice(0, MAX_TEXT));
}
