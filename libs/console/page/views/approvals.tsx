import type { ApprovalView, DetailedApprovalView } from '#approvals';
import type { ApprovalsAnswer } from '../../src/controllers/approvals.controller.js';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import {
  announce,
  Badge,
  DataTable,
  type Fact,
  Facts,
  Failure,
  Field,
  Heading,
  Notice,
  Time,
} from '../components.js';
import { names, timeUntil, valueText } from '../formats.js';
import { NotificationSwitch } from '../notifications.js';
import { type Answer, ask, send } from '../server.js';
import { usePageShortcuts } from '../shortcuts.js';

type Members = Readonly<Record<string, unknown>>;

interface Decided {
  readonly id: string;
  readonly text: string;
  readonly approved: boolean;
  readonly at: string;
}

/** Kept while another page is open. A sign-in clears it. */
let lastDecided: readonly Decided[] = [];
export function forgetDecisions(): void {
  lastDecided = [];
}

/** Calls that wait for a decision. @param pending the list that the shell also counts; null: this operator decides none */
export function ApprovalsPage({ pending }: { readonly pending: Answer<ApprovalsAnswer> | null }) {
  if (pending !== null) return <PendingApprovals pending={pending} />;
  return (
    <>
      <Heading>Approvals</Heading>
      <Notice>
        An operator decides approvals only if its agent is also named in <code>approvals.approvers</code>.
      </Notice>
    </>
  );
}

function PendingApprovals({ pending }: { readonly pending: Answer<ApprovalsAnswer> }) {
  const [decided, setDecided] = useState(lastDecided);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => void (lastDecided = decided), [decided]);
  usePageShortcuts({ n: { does: 'go to the next call that waits', run: focusNext } });
  const done = new Set(decided.map(({ id }) => id));
  const waiting = pending.value?.approvals.filter(({ id }) => !done.has(id));
  const settle = (call: ApprovalView, text: string, approved: boolean) => {
    setDecided([{ id: call.id, text, approved, at: new Date().toISOString() }, ...decided]);
    announce(text);
    pending.reload();
    // The card with the pressed button is gone: the focus goes to the head of what is left.
    heading.current?.focus();
  };
  return (
    <>
      <Heading aside={<NotificationSwitch />}>Approvals</Heading>
      <Failure error={pending.error} retry={pending.reload} />
      <h2 ref={heading} tabIndex={-1}>
        Waiting{waiting && ` (${waiting.length})`}
      </h2>
      {waiting === undefined && pending.error === null && <p class="quiet">Loading…</p>}
      {waiting?.length === 0 && <p class="empty">Nothing waits for a decision.</p>}
      <ul class="cards">
        {waiting?.map((call) => (
          <Card key={call.id} call={call} settle={settle} />
        ))}
      </ul>
      {decided.length > 0 && (
        <>
          <h2>Decided here</h2>
          <ul class="decided">
            {decided.map(({ id, text, approved, at }) => (
              <li key={id}>
                <Badge kind={approved ? 'good' : 'plain'}>{approved ? 'approved' : 'refused'}</Badge>
                <span>{text}</span>
                <Time iso={at} />
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function focusNext(): void {
  const cards = [...document.querySelectorAll<HTMLElement>('.cards > .card')];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  cards[(at + 1) % cards.length]?.focus();
}

type Settle = (call: ApprovalView, text: string, approved: boolean) => void;

function Card({ call, settle }: { readonly call: ApprovalView; readonly settle: Settle }) {
  const { id, tool, permission, requester, own } = call;
  const [detailed, setDetailed] = useState<DetailedApprovalView | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [, setTick] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    ask<DetailedApprovalView>(`api/approvals/${encodeURIComponent(id)}`, leaving.signal).then(
      setDetailed,
      (failed) => {
        if (!leaving.signal.aborted) setError(failed);
      },
    );
    // Updates the remaining time.
    const timer = setInterval(() => setTick((last) => last + 1), 5_000);
    return () => {
      leaving.abort();
      clearInterval(timer);
    };
  }, [id]);
  const preview = detailed?.preview;
  const className = call.class_name ?? (preview && classOf(preview));
  const title = `${tool}${className ? ` on ${className}` : ''} for ${requester.agent}`;
  return (
    <li class="card" tabIndex={-1} aria-label={title}>
      <div class="card-head">
        <h3>{tool}</h3>
        {className && <span class="class-name">{className}</span>}
        {preview && objectOf(preview) !== '' && <code>{objectOf(preview)}</code>}
        <Badge kind={permission === 'admin' ? 'bad' : 'busy'}>{permission}</Badge>
        <span class="ends">ends in {timeUntil(call.expires_at)}</span>
      </div>
      <p class="asker">
        <strong>{requester.agent}</strong> <span class="quiet">{requester.principal}</span>{' '}
        <span class="quiet">
          requested at <Time iso={call.requested_at} />
        </span>
      </p>
      <Failure error={error} />
      {preview ? <Change tool={tool} preview={preview} /> : error === null && <p class="quiet">Loading…</p>}
      {own ? (
        <Notice>This is your own request: another person decides it.</Notice>
      ) : (
        preview && <Decision call={call} title={title} settle={settle} />
      )}
    </li>
  );
}

/** The two decisions. They are offered once the change is shown: nobody decides what they have not seen. */
function Decision({ call, title, settle }: { call: ApprovalView; title: string; settle: Settle }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const reason = useRef<HTMLInputElement>(null);
  const decide = async (decision: 'approve' | 'deny') => {
    setBusy(true);
    const given = reason.current?.value.trim() ?? '';
    try {
      await send('POST', `api/approvals/${encodeURIComponent(call.id)}`, {
        decision,
        ...(given !== '' && { reason: given }),
      });
      const approved = decision === 'approve';
      settle(
        call,
        `${call.tool} was ${approved ? 'approved' : 'refused'} for ${call.requester.agent}`,
        approved,
      );
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <div class="decision">
      <Field label="Reason, sent to the agent">
        <input ref={reason} type="text" maxLength={500} autoComplete="off" />
      </Field>
      <button
        type="button"
        class="good"
        disabled={busy}
        aria-label={`Approve ${title}`}
        onClick={() => void decide('approve')}
      >
        Approve
      </button>
      <button
        type="button"
        class="bad"
        disabled={busy}
        aria-label={`Refuse ${title}`}
        onClick={() => void decide('deny')}
      >
        Refuse
      </button>
      <Failure error={error} />
    </div>
  );
}

const isMembers = (value: unknown): value is Members =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

/** The id of the row that would change. */
function objectOf({ change }: Members): string {
  return isMembers(change) ? valueText(change['object_id']) : '';
}

/** The class that the call is about, as the preview names it. */
function classOf(preview: Members): string | null {
  for (const held of [preview['change'], preview['args'], preview]) {
    const name = isMembers(held) ? (held['class_name'] ?? held['class']) : undefined;
    if (typeof name === 'string') return name;
  }
  return null;
}

/** Characters of JSON that are shown in one line. */
const MOST_OF_LINE = 60;

/** A value of a row; nothing at all is shown as a dash, an empty text as what it is. */
function Value({ of }: { readonly of: unknown }): ComponentChildren {
  if (of === undefined) return <span class="quiet">–</span>;
  if (of === null) return <span class="quiet">null</span>;
  if (typeof of === 'string' && of !== '') return <span class="value">{of}</span>;
  const line = JSON.stringify(of);
  return <code class="value">{line.length > MOST_OF_LINE ? JSON.stringify(of, null, 1) : line}</code>;
}

/** What the call would change, field by field. */
function Change({ tool, preview }: { readonly tool: string; readonly preview: Members }) {
  const { change, args, result, tool: _tool, permission: _permission, ...others } = preview;
  const facts: Fact[] = [];
  let table: ComponentChildren = null;
  if (isMembers(change)) {
    const { before, after, operation, class_name: _class, object_id: _object, ...rest } = change;
    const [old, next] = [isMembers(before) ? before : null, isMembers(after) ? after : null];
    facts.push(...restOf(rest));
    const fields = [...new Set([...Object.keys(old ?? {}), ...Object.keys(next ?? {})])];
    const columns = ['Field', ...(operation === 'create' ? [] : ['Now']), ...(next ? ['After'] : [])];
    table =
      fields.length > 0 ? (
        <DataTable
          caption={`What ${tool} would change`}
          columns={columns}
          rows={fields.map((name) => [
            <strong>{name}</strong>,
            ...(operation === 'create' ? [] : [<Value of={old?.[name]} />]),
            ...(next
              ? [
                  <span class={JSON.stringify(old?.[name]) === JSON.stringify(next[name]) ? '' : 'changed'}>
                    <Value of={next[name]} />
                  </span>,
                ]
              : []),
          ])}
        />
      ) : null;
    if (operation === 'delete') facts.unshift(['operation', 'the row is deleted']);
  } else if (isMembers(args) && Object.keys(args).length > 0) {
    table = (
      <DataTable
        caption={`Arguments of ${tool}`}
        columns={['Argument', 'Value']}
        rows={Object.entries(args).map(([name, value]) => [<strong>{name}</strong>, <Value of={value} />])}
      />
    );
  }
  facts.push(...restOf(others));
  return (
    <>
      {facts.length > 0 && <Facts pairs={facts} />}
      {table}
      {result !== undefined && (
        <>
          <p class="label">A dry run returned</p>
          <pre tabIndex={0} aria-label={`Dry run of ${tool}`}>
            {JSON.stringify(result, null, 2)}
          </pre>
        </>
      )}
      <details>
        <summary>As JSON</summary>
        <pre tabIndex={0} aria-label={`What ${tool} would do, as JSON`}>
          {JSON.stringify(preview, null, 2)}
        </pre>
      </details>
    </>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  withheld: 'not shown: credentials',
  withheld_from_you: 'not shown: you may not read',
  preview_error: 'no preview',
};

function restOf(members: Members): Fact[] {
  return Object.entries(members).map(([name, value]) => [
    LABELS[name] ?? name,
    Array.isArray(value) && value.every((one) => typeof one === 'string') ? (
      names(value)
    ) : (
      <Value of={value} />
    ),
  ]);
}
