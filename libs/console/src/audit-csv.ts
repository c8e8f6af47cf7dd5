import type { AuditPage, AuditQuery, AuditTrail } from '#audit';
import { lineWriter } from '#tools';

/** The columns of the file, in their order. A member that a later version adds is not a column by itself. */
const COLUMNS = (
  'at type agent_name tenant_id principal tool class_name action target success outcome gate error_code denial_kind ' +
  'cause rows result_size est_input_tokens duration_ms database_ms approver remote_address policy_version ' +
  'correlation_id request_id trace_id chain seq'
)
  .split(' ')
  .map((name) => ({ header: name, path: name }));

interface CsvLimits {
  /** Records of one file. */
  readonly records: number;
  /** Searches for one file: each reads a bounded part of the history. */
  readonly searches: number;
}

export const CSV_LIMITS: CsvLimits = { records: 10_000, searches: 100 };

/** Records of one search. */
const PAGE_SIZE = 200;

/**
 * Records of a search as CSV (RFC 4180), a page at a time. No text of a record is run by a spreadsheet, wherever that splits
 * it into cells. Where there is more than a file holds, the last row says so and names the cursor that continues.
 * @param signal ends the search that runs
 * @throws AuditQueryError
 */
export async function* auditCsv(
  trail: Pick<AuditTrail, 'search'>,
  query: AuditQuery,
  limits: CsvLimits = CSV_LIMITS,
  signal?: AbortSignal,
): AsyncGenerator<string> {
  const writer = lineWriter('csv', COLUMNS, { neutralizeFormulas: true });
  let left = limits.records;
  let cursor = query.cursor ?? null;
  let head = writer.head;
  for (let search = 0; search < limits.searches && left > 0; search += 1) {
    const part = { ...query, limit: Math.min(PAGE_SIZE, left), ...(cursor !== null && { cursor }) };
    const page: AuditPage = await trail.search(part, signal);
    left -= page.entries.length;
    const text = page.entries
      .map((entry) => writer.line(entry as unknown as Record<string, unknown>))
      .join('');
    if (head + text !== '') yield head + text;
    head = '';
    ({ cursor } = page);
    if (cursor === null) return;
  }
  const cause = `this file ends at its limit of ${left === 0 ? `${limits.records} records` : 'what one search reads'}; cursor=${cursor} continues`;
  yield writer.line({ type: 'cut', cause });
}
