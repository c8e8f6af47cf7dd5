import type { AuditAnswer } from '../src/controllers/audit.controller.js';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { toAddress } from './address.js';
import { Badge, Facts, type Kind, Table, Time } from './components.js';
import { formatCount, formatMilliseconds, formatTime, valueText } from './formats.js';
import { cleanText } from './shown-text.js';
import { useSorting } from './sorting.js';

/** An audit record as the service sends it. */
export type ConsoleRecord = Readonly<Record<string, unknown>>;

const TYPES: Readonly<Record<string, string>> = {
  approval: 'approval',
  operator_action: 'operator',
  configuration: 'configuration',
  authentication: 'sign-in',
  change_set: 'change set',
  task_end: 'task end',
  outage: 'outage',
  export_read: 'export',
  chain_begin: 'audit chain begun',
  chain_anchor: 'audit chain anchored',
  chain_end: 'audit chain ended',
};

/** How a configuration came. */
const ORIGINS: Readonly<Record<string, string>> = {
  start: 'at the start',
  file: 'its file changed',
  request: 'on request',
};

const ACTIONS: Readonly<Record<string, string>> = {
  'console.sign_in': 'signed in',
  'console.approve': 'approved a call',
  'console.deny': 'denied a call',
  'console.suspend_agent': 'suspended an agent',
  'console.resume_agent': 'resumed an agent',
  'console.undo_changes': 'took changes back',
  'console.discard_changes': 'discarded a change set',
  'console.explain': 'explained a call',
  'console.audit_csv': 'downloaded audit records',
  'console.usage_csv': 'downloaded the usage',
  'console.policy_trial': 'tried a policy',
  'console.policy_file': 'downloaded the policy',
};

/** Not refused by a rule: the call failed or was ended. */
const FAILURES: ReadonlySet<unknown> = new Set(['parse_error', 'internal_error', 'timeout', 'cancelled']);

export const isRefused = (record: ConsoleRecord): boolean => record['success'] === false;

/** What became of an approval that no approver decided, by the beginning of its reason. */
const UNDECIDED = [
  ['approval request aborted', 'caller left'],
  ['approval request timed out', 'expired'],
] as const;

function toDecision({ outcome, reason }: ConsoleRecord): readonly [text: string, kind: Kind] {
  if (outcome === 'approve') return ['approved', 'good'];
  if (outcome === 'deny') return ['denied', 'bad'];
  const found = UNDECIDED.find(([beginning]) => valueText(reason).startsWith(beginning));
  return [found?.[1] ?? 'not decided', 'busy'];
}

export function toVerdict(record: ConsoleRecord): readonly [text: string, kind: Kind] {
  if (record['type'] === 'approval') return toDecision(record);
  if (!isRefused(record)) return ['ok', 'good'];
  return FAILURES.has(record['error_code']) ? ['failed', 'busy'] : ['refused', 'bad'];
}

/** What the record is about: a tool, or an action. */
function describeSubject(record: ConsoleRecord): string {
  const { tool, action, type, step } = record;
  if (tool !== undefined) return valueText(tool);
  if (action !== undefined) return ACTIONS[valueText(action)] ?? valueText(action);
  return valueText(step) || (TYPES[valueText(type)] ?? valueText(type));
}

/** Who decided an approval: by the name of the key where it has one. */
export const nameApprover = ({ approver, approver_key: key }: ConsoleRecord): string =>
  valueText(key) || valueText(approver);

/** Why it was refused, or what came of it. */
function describeReason(record: ConsoleRecord): string {
  const { gate, error_code: code, denial_kind: kind, type, cause } = record;
  if (type === 'authentication') return valueText(cause) || 'no valid credential';
  if (type === 'approval')
    return [record['approver'] && `by ${nameApprover(record)}`, record['reason']]
      .map(valueText)
      .filter((part) => part !== '')
      .join(' · ');
  if (type === 'configuration') return describeConfiguration(record);
  // The kind of a refusal says more than its code.
  const parts = [...new Set([gate, kind ?? code, cause].map(valueText))].filter((part) => part !== '');
  if (parts.length > 0) return parts.join(' · ');
  // Of a sign-in it is the network.
  if (record['action'] === 'console.sign_in') return `from ${valueText(record['target'])}`;
  return valueText(record['outcome'] ?? record['target'] ?? record['reason']);
}

function describeConfiguration(record: ConsoleRecord): string {
  const { by, issues, policy_version: policy, previous_policy_version: previous } = record;
  const [first] = Array.isArray(issues) ? (issues as readonly unknown[]) : [];
  const policies = [previous, policy].map(valueText).filter((version) => version !== '');
  const change = policy === previous ? `${valueText(policy)} as before` : policies.join(' → ');
  return [ORIGINS[valueText(by)] ?? valueText(by), valueText(first) || `policy ${change}`].join(' · ');
}

/** The agent; of a caller that is none, its network. */
function callerText({ agent_name: agent, remote_address: address }: ConsoleRecord): string {
  if (agent !== undefined || address === undefined) return valueText(agent);
  return `from ${valueText(address)}`;
}

/** Members by which the audit can be searched, and the names of these filters. */
const SEARCHABLE: Readonly<Record<string, string>> = {
  agent_name: 'agent',
  tool: 'tool',
  class_name: 'class',
  principal: 'principal',
  approver: 'approver',
  approver_key: 'approver',
  key_name: 'key',
  object_id: 'object_id',
  object_digest: 'object_digest',
  request_id: 'request_id',
  tenant_id: 'tenant',
  gate: 'gate',
  error_code: 'code',
  correlation_id: 'correlation_id',
  trace_id: 'trace_id',
  remote_address: 'address',
  type: 'type',
};

function memberValue(name: string, value: unknown): ComponentChildren {
  const text = valueText(value);
  const filter = SEARCHABLE[name];
  if (name === 'at') return <Time iso={text} />;
  if (filter === undefined) return cleanText(text);
  return (
    <>
      {cleanText(text)}{' '}
      <a
        class="find"
        href={toAddress('audit', { [filter]: text })}
        aria-label={`Find records with this ${name}`}
      >
        find
      </a>
    </>
  );
}

/** Where records were found, and how far the search went. */
export type Searched = NonNullable<AuditAnswer['searched']>;

/** The store that was searched, and whose. */
export function describeStore({ store, scope }: Searched): string {
  const places: Readonly<Record<string, string>> = {
    memory: 'memory (forgotten at a restart)',
    file: 'files',
    mongodb: 'MongoDB',
  };
  const of = scope === 'replica' ? ' of this replica' : ' of all replicas';
  return `from the ${places[store] ?? store}${store === 'mongodb' ? ',' : ''}${of}`;
}

export function wherefrom(searched: Searched): string {
  const { back_to: back, records, cut } = searched;
  return [
    describeStore(searched),
    ...(records === undefined ? [] : [`${formatCount(records, 'record')} read`]),
    ...(back === null ? [] : [`back to ${formatTime(back)}`]),
    ...(cut === null ? [] : ['stopped at the limit of one search: More goes on']),
  ].join(' · ');
}

const COLUMNS = ['Time', 'Verdict', 'Call', 'Class', 'Agent', 'Tenant', 'Why', 'Took'] as const;
type Column = (typeof COLUMNS)[number];

/** The text of each column that may be empty. */
const TEXTS: Readonly<Partial<Record<Column, (record: ConsoleRecord) => string>>> = {
  Class: (record) => valueText(record['class_name']),
  Agent: callerText,
  Tenant: (record) => valueText(record['tenant_id']),
  Why: describeReason,
  Took: ({ duration_ms: duration }) => (typeof duration === 'number' ? formatMilliseconds(duration) : ''),
};

/** Records, newest first; each opens to all that is known of it. */
export function RecordTable({ caption, records }: { caption: string; records: readonly Keyed[] }) {
  const sorting = useSorting(records, ({ record }, column) => {
    if (column === 'Time') return valueText(record['at']);
    if (column === 'Verdict') return toVerdict(record)[0];
    if (column === 'Call') return describeSubject(record);
    const { duration_ms: duration } = record;
    if (column === 'Took') return typeof duration === 'number' ? duration : '';
    return TEXTS[column as Column]?.(record) ?? '';
  });
  if (records.length === 0) return null;
  const columns = COLUMNS.filter((name) => {
    const read = TEXTS[name];
    return !read || records.some(({ record }) => read(record) !== '');
  });
  return (
    <Table
      caption={caption}
      kind="records"
      columns={columns}
      isFigure={(column) => column === 'Took'}
      sorting={sorting}
    >
      <tbody role="rowgroup">
        {sorting.sorted.map(({ key, record }) => (
          <RecordRow key={key} record={record} columns={columns} />
        ))}
      </tbody>
    </Table>
  );
}

/** A record with a number of its own, by which its row is kept when others come. */
export interface Keyed {
  readonly key: number;
  readonly record: ConsoleRecord;
}

let lastKey = 0;
export const addKeys = (records: readonly ConsoleRecord[]): Keyed[] =>
  records.map((record) => ({ key: ++lastKey, record }));

/** Members in the order in which one asks: when and what, who, on what, how it ended and why, at what cost. All others follow. */
const MEMBER_ORDER: readonly string[] = [
  'at',
  'type',
  'action',
  'step',
  'tool',
  'change_set',
  'kind',
  'undoes',
  'class_name',
  'classes',
  'joined_classes',
  'object_id',
  'agent_name',
  'principal',
  'key_name',
  'tenant_id',
  'success',
  'outcome',
  'gate',
  'error_code',
  'denial_kind',
  'cause',
  'reason',
  'approver',
  'approval_id',
  'duration_ms',
  'rows',
  'args_keys',
  'args_digest',
  'request_id',
  'correlation_id',
  'trace_id',
];

function sortMembers(record: ConsoleRecord): readonly (readonly [name: string, value: unknown])[] {
  const placeOf = (name: string) => {
    const place = MEMBER_ORDER.indexOf(name);
    return place < 0 ? MEMBER_ORDER.length : place;
  };
  return Object.entries(record)
    .filter(([, value]) => valueText(value) !== '')
    .sort(([one], [other]) => placeOf(one) - placeOf(other) || (one < other ? -1 : 1));
}

/** What can be done with an opened record. */
function RecordActions({ record }: { readonly record: ConsoleRecord }) {
  const [isCopied, setCopied] = useState(false);
  const { agent_name: agent, tool, class_name: className, change_set: set } = record;
  const copy = () =>
    void navigator.clipboard.writeText(JSON.stringify(record, null, 2)).then(() => setCopied(true));
  return (
    <p class="buttons">
      {/* A browser has none outside of a secure connection. */}
      {(navigator.clipboard as Clipboard | undefined) && (
        <button type="button" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy as JSON'}
        </button>
      )}
      {agent !== undefined && tool !== undefined && (
        <a
          class="button"
          href={toAddress('explain', {
            agent: valueText(agent),
            tool: valueText(tool),
            class: valueText(className),
          })}
        >
          Explain this call
        </a>
      )}
      {agent !== undefined && (
        <a class="button" href={toAddress('agent', { name: valueText(agent) })}>
          Its agent
        </a>
      )}
      {set !== undefined && (
        <a class="button" href={toAddress('changes', { set: valueText(set) })}>
          Its change set
        </a>
      )}
    </p>
  );
}

function RecordRow({
  record,
  columns,
}: {
  readonly record: ConsoleRecord;
  readonly columns: readonly Column[];
}) {
  const [isOpen, setOpen] = useState(false);
  const [verdict, kind] = toVerdict(record);
  const subject = describeSubject(record);
  const type = TYPES[valueText(record['type'])];
  const cell = (name: Column, className: string, content: ComponentChildren, title: string) => (
    <td role="cell" data-label={name} class={className}>
      <span title={title}>{content}</span>
    </td>
  );
  /** One line; the whole text is its title. */
  const textCell = (name: Column, className: string) => {
    if (!columns.includes(name)) return null;
    const text = cleanText(TEXTS[name]?.(record) ?? '', 300);
    return cell(name, className, text, text);
  };
  const toggle = (event: MouseEvent) => {
    const target = event.target as Element;
    if (target.closest('a') || getSelection()?.toString()) return;
    setOpen(!isOpen);
  };
  return (
    <>
      <tr role="row" class={isRefused(record) ? 'record refused' : 'record'} onClick={toggle}>
        <td role="cell" data-label="Time" class="when">
          <button type="button" class="plain" aria-expanded={isOpen}>
            <Time iso={valueText(record['at'])} recent />
          </button>
        </td>
        {cell('Verdict', 'verdict-cell', <Badge kind={kind}>{verdict}</Badge>, verdict)}
        {cell(
          'Call',
          'subject',
          <>
            <b>{cleanText(subject, 300)}</b>
            {type !== undefined && type !== subject && <span class="quiet">{` ${type}`}</span>}
          </>,
          cleanText(subject, 300),
        )}
        {textCell('Class', 'class-name')}
        {textCell('Agent', 'agent')}
        {textCell('Tenant', 'tenant')}
        {textCell('Why', 'reason')}
        {textCell('Took', 'figure')}
      </tr>
      {isOpen && (
        <tr role="row" class="details-row">
          <td role="cell" colSpan={columns.length}>
            <Facts
              pairs={sortMembers(record).map(([name, value]) => [name, memberValue(name, value)] as const)}
            />
            <RecordActions record={record} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Whether any text of a record contains what is looked for. */
export function mentions(record: ConsoleRecord, wanted: string): boolean {
  if (wanted === '') return true;
  const lower = wanted.toLowerCase();
  return Object.values(record).some((value) => valueText(value).toLowerCase().includes(lower));
}
