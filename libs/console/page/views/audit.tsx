import type { AuditAnswer } from '../../src/controllers/audit.controller.js';
import { useEffect, useRef, useState } from 'preact/hooks';
import { toAddress, CONSOLE, open, useAddress } from '../address.js';
import { announce, Failure, Field, Heading, Notice, Suggestions, TextField } from '../components.js';
import { formatCount, toLocalTime, valueText } from '../formats.js';
import { type ConsoleRecord, type Keyed, addKeys, RecordTable, wherefrom } from '../records.js';
import { DECISIONS } from './decided-approvals.js';
import type { SimulationCatalogue } from '../../src/controllers/explain.controller.js';
import { ask, useAnswer } from '../server.js';

/** Records of other versions are found as well: which members they have is not known. */
interface FoundRecords extends Omit<AuditAnswer, 'entries'> {
  readonly entries: readonly ConsoleRecord[];
}

const FILTERS = [
  ['agent', 'Agent', 'text'],
  ['tool', 'Tool', 'text'],
  ['class', 'Class', 'text'],
  ['from', 'From', 'datetime-local'],
  ['to', 'Until', 'datetime-local'],
  ['tenant', 'Tenant', 'text'],
  ['principal', 'Principal', 'text'],
  ['key', 'Key', 'text'],
  ['address', 'Address', 'text'],
  ['approver', 'Approver', 'text'],
  ['object_id', 'Object id', 'text'],
  ['object_digest', 'Object digest', 'text'],
  ['gate', 'Gate', 'text'],
  ['code', 'Code', 'text'],
  ['correlation_id', 'Correlation id', 'text'],
  ['request_id', 'Request id', 'text'],
  ['trace_id', 'Trace id', 'text'],
] as const;
/** The filters that are always shown. */
const USUAL_FILTERS = ['agent', 'tool', 'class'];

const OUTCOMES = [
  ['', 'any'],
  ['failure', 'refused or failed'],
  ['success', 'success'],
] as const;
const TYPES = [
  ['', 'any'],
  ['tool_call', 'calls'],
  ['approval', 'approvals'],
  ['operator_action', 'operators'],
  ['configuration', 'configurations'],
  ['authentication', 'refused sign-ins'],
  ['export_read', 'exports'],
  ['change_set', 'change sets'],
  ['task_end', 'ended tasks'],
  ['chain_anchor', 'anchors of the chain'],
] as const;
const NAMES = [...FILTERS.map(([name]) => name), 'outcome', 'decision', 'type'];

/** Presets of `from`: minutes, and what they are called. */
const PRESETS = [
  [15, 'Last 15 minutes'],
  [60, 'Last hour'],
  [1_440, 'Last day'],
] as const;

const isAnchor = (keyed: Keyed | undefined) => keyed?.record['type'] === 'chain_anchor';

/** Without the anchors of the chain behind another one: a quiet time has nothing else. */
function foldAnchors(records: readonly Keyed[]): readonly Keyed[] {
  return records.filter((one, at) => !isAnchor(one) || !isAnchor(records[at - 1]));
}

/** Names in the records that were found, for suggestions. */
function collectNames(records: readonly Keyed[]): Readonly<Record<string, readonly string[]>> {
  const read = (member: string) =>
    [...new Set(records.map(({ record }) => valueText(record[member])))].filter((name) => name !== '').sort();
  return { class: read('class_name'), gate: read('gate'), code: read('error_code') };
}

/** What was recorded, newest first. The filters are in the address. */
export function AuditPage() {
  const { filters } = useAddress();
  const query = new URLSearchParams(
    NAMES.flatMap((name) => (filters.get(name) ? [[name, filters.get(name) as string]] : [])),
  );
  const asked = query.toString();
  const agent = query.get('agent');
  const [found, setFound] = useState<{ records: readonly Keyed[]; page: FoundRecords } | null>(null);
  const [failure, setFailure] = useState<{ error: unknown; retry: () => void } | null>(null);
  const [round, setRound] = useState(0);
  const leaving = useRef(new AbortController());

  const load = async (cursor: string | null, before: readonly Keyed[]) => {
    const { signal } = leaving.current;
    const paged = new URLSearchParams(query);
    if (cursor !== null) paged.set('cursor', cursor);
    try {
      const page = await ask<FoundRecords>(`api/audit?${paged.toString()}`, signal);
      const records = [...before, ...addKeys(page.entries)];
      setFound({ records, page });
      setFailure(null);
      if (cursor === null) announce(`${formatCount(records.length, 'record')} found`);
    } catch (failed) {
      if (!signal.aborted) setFailure({ error: failed, retry: () => void load(cursor, before) });
    }
  };
  useEffect(() => {
    leaving.current = new AbortController();
    const { current } = leaving;
    void load(null, []);
    return () => current.abort();
  }, [asked, round]);

  // Known names are suggested: whatever else was recorded can be typed.
  const catalogue = useAnswer<SimulationCatalogue>('api/agents');
  const suggested: Readonly<Record<string, readonly string[]>> = {
    agent: catalogue.value?.agents.map(({ name }) => name) ?? [],
    tool: catalogue.value?.tools.map(({ name }) => name) ?? [],
    ...collectNames(found?.records ?? []),
  };
  const search = (event: Event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const wanted = Object.fromEntries(
      [...given].map(([name, value]) => {
        const text = String(value as string).trim();
        const isTime = text !== '' && (name === 'from' || name === 'to');
        return [name, isTime ? new Date(text).toISOString() : text];
      }),
    );
    const address = toAddress('audit', wanted);
    if (address === location.hash) setRound(round + 1);
    else open(address);
  };
  const input = ([name, label, type]: (typeof FILTERS)[number]) => {
    const value = query.get(name) ?? '';
    const list = suggested[name] ? `known-${name}` : undefined;
    return type === 'text' ? (
      <TextField key={name} label={label} name={name} defaultValue={value} list={list} />
    ) : (
      <Field key={name} label={label}>
        <input name={name} type="datetime-local" defaultValue={toLocalTime(value)} />
      </Field>
    );
  };
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) => (
    <Field label={label}>
      <select name={name}>
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={value === (query.get(name) ?? '')}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
  // One that is set is shown; the others would push what was found out of the window.
  const isShown = (name: string) => USUAL_FILTERS.includes(name) || query.has(name);
  const list = (shown: boolean) => (
    <>
      {FILTERS.filter(([name]) => isShown(name) === shown).map(input)}
      {shown && choice('outcome', 'Outcome', OUTCOMES)}
      {isShown('type') === shown && choice('type', 'Kind', TYPES)}
      {isShown('decision') === shown && choice('decision', 'Decision', DECISIONS)}
    </>
  );
  const shown = found && !query.has('type') ? foldAnchors(found.records) : (found?.records ?? []);
  const folded = (found?.records.length ?? 0) - shown.length;
  const csv = `${CONSOLE}/api/audit?${new URLSearchParams([...query, ['format', 'csv']]).toString()}`;
  return (
    <>
      <Heading>Audit</Heading>
      {/* Its inputs begin with what the address says, also after the back button. */}
      <form key={asked} class="panel" role="search" onSubmit={search}>
        <div class="grid">{list(true)}</div>
        <details>
          <summary>More filters</summary>
          <div class="grid">{list(false)}</div>
        </details>
        {Object.entries(suggested).map(([name, known]) => (
          <Suggestions key={name} id={`known-${name}`} texts={known} />
        ))}
        <p class="buttons">
          <button type="submit" class="main">
            Search
          </button>
          {PRESETS.map(([minutes, text]) => (
            <button
              key={minutes}
              type="button"
              onClick={() =>
                open(
                  toAddress('audit', {
                    ...Object.fromEntries(query),
                    from: new Date(Date.now() - minutes * 60_000).toISOString(),
                    to: '',
                  }),
                )
              }
            >
              {text}
            </button>
          ))}
          {asked !== '' && (
            <a class="button" href="#/audit">
              Clear
            </a>
          )}
          <a class="button" href={csv} download>
            Download CSV
          </a>
        </p>
      </form>
      <Failure error={failure?.error} retry={failure?.retry} />
      {found === null ? (
        failure === null && <p class="quiet">Loading…</p>
      ) : (
        <>
          {found.page.degraded && (
            <Notice kind="busy">
              The store of audit records does not answer: these are the latest records of one replica.
            </Notice>
          )}
          <p class="quiet counted">
            {formatCount(found.records.length, 'record')}
            {found.page.cursor === null ? '' : ', and more'} ·{' '}
            {found.page.searched
              ? wherefrom(found.page.searched)
              : found.page.reach === 'recent'
                ? 'from the memory of this replica, which forgets at a restart'
                : 'from the store of the audit log'}
            {agent !== null && (
              <>
                {' '}
                · <a href={toAddress('agent', { name: agent })}>{`Agent ${agent}`}</a>
              </>
            )}
          </p>
          {folded > 0 && (
            <p class="quiet">
              {formatCount(folded, 'anchor')} of the audit chain, each behind another one, left out:{' '}
              <a href={toAddress('audit', { ...Object.fromEntries(query), type: 'chain_anchor' })}>
                show them
              </a>
            </p>
          )}
          {found.records.length === 0 && found.page.cursor === null && (
            <p class="empty">
              {asked === '' ? (
                'Nothing is recorded yet: each call leaves a record here.'
              ) : (
                <>
                  No record matches. <a href="#/audit">Show all of them</a>
                </>
              )}
            </p>
          )}
          <RecordTable caption="Records, newest first" records={shown} />
          {found.page.cursor !== null && (
            <p>
              <button type="button" onClick={() => void load(found.page.cursor, found.records)}>
                More
              </button>
            </p>
          )}
        </>
      )}
    </>
  );
}
