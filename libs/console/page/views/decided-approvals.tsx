import type { AuditAnswer } from '../../src/controllers/audit.controller.js';
import { useEffect } from 'preact/hooks';
import { narrowAddress, toAddress, useAddress } from '../address.js';
import { Badge, DataTable, Failure, Select, Suggestions, TextField, Time } from '../components.js';
import { formatCount, valueText } from '../formats.js';
import { type ConsoleRecord, nameApprover, toVerdict } from '../records.js';
import { type Answer, useAnswer } from '../server.js';
import { cleanText } from '../shown-text.js';

export interface ApprovalRecords extends Omit<AuditAnswer, 'entries'> {
  readonly entries: readonly ConsoleRecord[];
}

/** Milliseconds between two searches. */
const SEARCH_INTERVAL = 15_000;

export const DECISIONS = [
  ['', 'any'],
  ['approve', 'approved'],
  ['deny', 'denied'],
  ['unavailable', 'not decided'],
] as const;

/** A filter, its label, and what it suggests. */
const FILTERS = [
  ['agent', 'Agent', (record: ConsoleRecord) => valueText(record['agent_name'])],
  ['class', 'Class', (record: ConsoleRecord) => valueText(record['class_name'])],
  ['approver', 'Decided by', nameApprover],
] as const;

/** Approvals whose caller stopped waiting before anybody decided, by their id. @param wanted false: nothing is asked */
export function useLeftCallers(wanted: boolean): ReadonlyMap<string, string> {
  const { value } = useAnswer<ApprovalRecords>(
    wanted ? 'api/audit?type=approval&decision=unavailable' : null,
    SEARCH_INTERVAL,
  );
  // Newest first: the last time that it was left counts.
  const entries = [...(value?.entries ?? [])].reverse();
  return new Map(
    entries.map((record) => [valueText(record['approval_id']), valueText(record['at'])] as const),
  );
}

/** What was decided, by whom and why, newest first, from the audit records. @param changed counts what happened here */
export function DecidedApprovals({ changed }: { readonly changed: number }) {
  const { filters } = useAddress();
  const names = [...FILTERS.map(([name]) => name), 'decision'] as const;
  const wanted = Object.fromEntries(names.map((name) => [name, filters.get(name) ?? '']));
  const given = Object.entries(wanted).filter(([, value]) => value !== '');
  const query = new URLSearchParams([['type', 'approval'], ...given]);
  const answer = useAnswer<ApprovalRecords>(`api/audit?${query.toString()}`, SEARCH_INTERVAL);
  useEffect(() => {
    if (changed > 0) answer.reload();
  }, [changed]);
  const found = answer.value?.entries ?? [];
  const narrow = (name: string, value: string) => narrowAddress({ [name]: value.trim() });
  return (
    <section class="history" aria-label="Decided">
      <h2>Decided</h2>
      <form class="panel" role="search" onSubmit={(event) => event.preventDefault()}>
        {FILTERS.map(([name, , read]) => (
          <Suggestions key={name} id={`decided-${name}`} texts={listNames(found.map(read))} />
        ))}
        <div class="grid">
          {FILTERS.map(([name, label]) => (
            <TextField
              key={`${name} ${wanted[name]}`}
              label={label}
              list={`decided-${name}`}
              defaultValue={wanted[name]}
              onChange={(event) => narrow(name, event.currentTarget.value)}
            />
          ))}
          <Select
            label="Outcome"
            value={wanted['decision'] ?? ''}
            options={DECISIONS}
            change={(value) => narrow('decision', value)}
          />
        </div>
      </form>
      <Failure error={answer.error} retry={answer.reload} />
      <Found
        answer={answer}
        isFiltered={given.length > 0}
        all={toAddress('audit', { ...wanted, type: 'approval' })}
      />
    </section>
  );
}

const listNames = (texts: readonly string[]): readonly string[] =>
  [...new Set(texts)].filter((name) => name !== '').sort();

function Found({
  answer,
  isFiltered,
  all,
}: {
  answer: Answer<ApprovalRecords>;
  isFiltered: boolean;
  all: string;
}) {
  const { value: page } = answer;
  if (page === undefined) return answer.error === null ? <p class="quiet">Loading…</p> : null;
  if (page.entries.length === 0)
    return (
      <p class="empty">
        {isFiltered ? (
          <>
            No decision matches. <a href="#/approvals">Show all of them</a>
          </>
        ) : (
          'Nothing was decided yet: a call that waits is shown above, and here once somebody decided it.'
        )}
      </p>
    );
  return (
    <>
      <DataTable
        caption="Decided approvals, newest first"
        sortKeys={page.entries.map((record) => [
          valueText(record['at']),
          toVerdict(record)[0],
          valueText(record['tool']),
          valueText(record['agent_name']),
          nameApprover(record),
          valueText(record['reason']),
        ])}
        columns={['Time', 'Outcome', 'Call', 'Agent', 'Decided by', 'Why']}
        rows={page.entries.map((record) => {
          const [verdict, kind] = toVerdict(record);
          const text = (member: string) => cleanText(valueText(record[member]), 300);
          return [
            <Time iso={valueText(record['at'])} />,
            <Badge kind={kind}>{verdict}</Badge>,
            <>
              <b>{text('tool')}</b> <span class="class-name">{text('class_name')}</span>
            </>,
            <a href={toAddress('agent', { name: valueText(record['agent_name']) })}>{text('agent_name')}</a>,
            cleanText(nameApprover(record), 300) || '–',
            text('reason') || '–',
          ];
        })}
      />
      <p class="quiet">
        {formatCount(page.entries.length, 'decision')}
        {page.cursor !== null && ', and more'} · <a href={all}>Show them in the audit</a>
      </p>
    </>
  );
}
