import { el } from './dom.js';
import { facts } from './table.js';
import { shownTime } from './times.js';

/** A record as the service tells it. */
export type ConsoleRecord = Readonly<Record<string, unknown>>;

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return '';
  return Array.isArray(value) ? value.map(text).join(', ') : JSON.stringify(value);
}

const WORDS: Readonly<Record<string, string>> = {
  approval: 'approval',
  operator_action: 'operator',
  authentication: 'sign-in',
  task_end: 'task end',
  outage: 'outage',
  export_read: 'export',
};

export const isRefused = (record: ConsoleRecord): boolean => record['success'] === false;

const FAULTS: ReadonlySet<unknown> = new Set(['parse_error', 'internal_error', 'timeout', 'cancelled']);

/** No rule said no: it went wrong, or was broken off. */
function verdictOf(record: ConsoleRecord): string {
  if (!isRefused(record)) return 'ok';
  return FAULTS.has(record['error_code']) ? 'failed' : 'refused';
}

/** What a record is about, in a word or two. */
function subject(record: ConsoleRecord): string {
  return text(record['tool'] ?? record['action'] ?? WORDS[text(record['type'])] ?? record['type']);
}

function reason(record: ConsoleRecord): string {
  const { gate, error_code: code, denial_kind: kind } = record;
  const why = [gate, code === gate ? undefined : code, kind].map(text).filter((part) => part !== '');
  if (why.length > 0) return why.join(' · ');
  return text(record['outcome'] ?? record['target'] ?? record['denial_kind']);
}

/** One record: a line to look at, and everything that is known of it to open. */
export function recordItem(record: ConsoleRecord): HTMLLIElement {
  const refused = isRefused(record);
  const kind = WORDS[text(record['type'])];
  const rest = Object.entries(record).filter(([, value]) => text(value) !== '');
  const details = el(
    'details',
    {},
    el(
      'summary',
      {},
      el('time', { datetime: text(record['at']) }, shownTime(text(record['at']))),
      el('span', { class: `badge ${refused ? 'bad' : 'good'}` }, verdictOf(record)),
      el(
        'span',
        { class: 'subject' },
        subject(record),
        kind ? el('span', { class: 'quiet' }, ` ${kind}`) : null,
      ),
      el('span', { class: 'agent' }, text(record['agent_name'])),
      el('span', { class: 'reason' }, reason(record)),
      el(
        'span',
        { class: 'cost' },
        record['duration_ms'] === undefined ? '' : `${text(record['duration_ms'])} ms`,
      ),
    ),
  );
  // Filled when it is opened: hundreds of records are listed and few are looked at.
  details.addEventListener(
    'toggle',
    () => details.append(facts(rest.map(([name, value]) => [name, text(value)] as const))),
    { once: true },
  );
  return el('li', { class: refused ? 'record refused' : 'record' }, details);
}

/** Whether any text of a record contains what is looked for. */
export function mentions(record: ConsoleRecord, wanted: string): boolean {
  if (wanted === '') return true;
  const lower = wanted.toLowerCase();
  return Object.values(record).some((value) => text(value).toLowerCase().includes(lower));
}
