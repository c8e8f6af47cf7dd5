import type { OperatorSet, UndoPreview, ViewedEntry } from '#changes';
import type { ChangeSetAnswer, ChangeSetsAnswer } from '../../src/controllers/changes.controller.js';
import { useState } from 'preact/hooks';
import { toAddress, useAddress } from '../address.js';
import {
  announce,
  Badge,
  DataTable,
  Facts,
  Failure,
  Field,
  Heading,
  type Kind,
  Loaded,
  Notice,
  Time,
} from '../components.js';
import { valueText } from '../formats.js';
import { send, useAnswer } from '../server.js';
import { cleanText } from '../shown-text.js';

const STATES: Readonly<Record<string, Kind>> = { applied: 'good', submitted: 'busy', open: 'busy' };
const REFRESH_INTERVAL = 15_000;
const MAX_VALUE = 500;

/** Change sets of agents: which there are, one row by row, and taking them back. */
export function ChangesPage() {
  const { filters } = useAddress();
  const id = filters.get('set');
  return id === null ? <ChangeSets /> : <OneSet key={id} id={id} />;
}

function ChangeSets() {
  const listed = useAnswer<ChangeSetsAnswer>('api/changes?limit=100', REFRESH_INTERVAL);
  return (
    <>
      <Heading>Changes</Heading>
      <Loaded of={listed}>
        {({ change_sets: sets }) =>
          sets.length === 0 ? (
            <p class="empty">
              No change set is kept. <code>writes: proposed</code> and <code>changes.record: all</code> make
              them.
            </p>
          ) : (
            <DataTable
              caption="Change sets, the newest first"
              columns={['Change set', 'State', 'Agent', 'Principal', 'Rows', 'Opened', 'Applied']}
              rows={sets.map((set) => [
                <a href={toAddress('changes', { set: set.change_set })}>{describeTitle(set)}</a>,
                <State set={set} />,
                set.agent,
                set.principal,
                describeRows(set.rows),
                <Time iso={set.opened_at} />,
                set.applied_at === undefined ? '–' : <Time iso={set.applied_at} />,
              ])}
            />
          )
        }
      </Loaded>
      <h2>Undo by agent and time</h2>
      <UndoByTime onUndone={listed.reload} />
    </>
  );
}

function OneSet({ id }: { readonly id: string }) {
  const shown = useAnswer<ChangeSetAnswer>(`api/changes/${encodeURIComponent(id)}`);
  const [error, setError] = useState<unknown>(null);
  const discard = () =>
    send<OperatorSet>('POST', `api/changes/${encodeURIComponent(id)}/discard`, {}).then(
      () => {
        announce('The change set is discarded');
        shown.reload();
      },
      (failed: unknown) => setError(failed),
    );
  return (
    <>
      <Heading>Change set</Heading>
      <p>
        <a href={toAddress('changes')}>All changes</a>
      </p>
      <Loaded of={shown}>
        {(set) => (
          <>
            <Facts
              pairs={[
                ['Title', describeTitle(set)],
                ['Reason', cleanText(set.reason ?? '–', MAX_VALUE)],
                ['State', <State set={set} />],
                ['Rows', describeRows(set.rows)],
                ['Agent', `${set.agent} ${set.principal}`],
                ['Approved by', set.approver ?? '–'],
              ]}
            />
            <Rows entries={set.entries} />
            <Failure error={error} />
            {set.state === 'submitted' && (
              <p>
                It waits for a decision: <a href="#/approvals">approvals</a>
              </p>
            )}
            {(set.state === 'open' || set.state === 'submitted') && (
              <button type="button" onClick={() => void discard()}>
                Discard
              </button>
            )}
            {set.state === 'applied' && set.undone_by === undefined && (
              <>
                <h2>Undo</h2>
                <Undo target={{ change_set: id }} onUndone={shown.reload} />
              </>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

function UndoByTime({ onUndone }: { readonly onUndone: () => void }) {
  const [agent, setAgent] = useState('');
  const [since, setSince] = useState('');
  const [until, setUntil] = useState('');
  const isComplete = agent !== '' && since !== '' && until !== '';
  return (
    <>
      <div class="grid">
        <Field label="Agent">
          <input value={agent} onInput={(event) => setAgent(event.currentTarget.value)} />
        </Field>
        <Field label="Since">
          <input
            type="datetime-local"
            step="1"
            value={since}
            onInput={(event) => setSince(event.currentTarget.value)}
          />
        </Field>
        <Field label="Until">
          <input
            type="datetime-local"
            step="1"
            value={until}
            onInput={(event) => setUntil(event.currentTarget.value)}
          />
        </Field>
      </div>
      {isComplete && (
        <Undo
          key={`${agent} ${since} ${until}`}
          target={{ agent, since: new Date(since).toISOString(), until: new Date(until).toISOString() }}
          onUndone={onUndone}
        />
      )}
    </>
  );
}

interface UndoProps {
  readonly target: object;
  readonly onUndone: () => void;
}

/** First what would be taken back, its conflicts before all else; then the button that does. */
function Undo({ target, onUndone }: UndoProps) {
  const [preview, setPreview] = useState<UndoPreview>();
  const [skips, setSkips] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    await work().catch((failed: unknown) => setError(failed));
    setBusy(false);
  };
  const look = () => run(async () => setPreview(await send<UndoPreview>('POST', 'api/changes/undo', target)));
  const undo = (digest: string) =>
    run(async () => {
      await send<OperatorSet>('POST', 'api/changes/undo', { ...target, digest, skip_conflicts: skips });
      announce('The changes are taken back');
      setPreview(undefined);
      onUndone();
    });
  if (!preview)
    return (
      <>
        <Failure error={error} />
        <button type="button" disabled={busy} onClick={() => void look()}>
          Show what would be taken back
        </button>
      </>
    );
  const { conflicts, entries, rows, digest } = preview;
  return (
    <>
      {conflicts.length > 0 && (
        <>
          <Notice kind="bad">{`${countRows(conflicts.length)} cannot be taken back.`}</Notice>
          <Rows entries={conflicts} />
          <label>
            <input
              type="checkbox"
              checked={skips}
              onChange={(event) => setSkips(event.currentTarget.checked)}
            />{' '}
            Leave them out
          </label>
        </>
      )}
      <p>{`Taking back: ${describeRows(rows)}`}</p>
      <Rows entries={entries} />
      <Failure error={error} />
      <p class="buttons">
        <button
          type="button"
          disabled={busy || entries.length === 0 || (conflicts.length > 0 && !skips)}
          onClick={() => void undo(digest)}
        >
          Take back
        </button>
        <button type="button" onClick={() => setPreview(undefined)}>
          Cancel
        </button>
      </p>
    </>
  );
}

function Rows({ entries }: { readonly entries: readonly ViewedEntry[] }) {
  if (entries.length === 0) return null;
  return (
    <DataTable
      caption="Rows, in the order in which they change"
      columns={['Row', 'Change', 'Before', 'After']}
      rows={entries.map((entry) => [
        entry.class_name === undefined ? 'hidden' : `${entry.class_name} ${entry.object_id ?? '(new)'}`,
        entry.conflict ?? entry.operation,
        showValues(entry.before),
        entry.hidden ?? showValues(entry.after),
      ])}
    />
  );
}

const showValues = (row: ViewedEntry['after']) =>
  row === undefined ? '–' : <code>{cleanText(valueText(row), MAX_VALUE)}</code>;

function State({ set }: { readonly set: OperatorSet }) {
  return (
    <Badge kind={STATES[set.state] ?? 'plain'}>{set.undone_by === undefined ? set.state : 'undone'}</Badge>
  );
}

const describeTitle = ({ title, kind, change_set: id }: OperatorSet): string =>
  cleanText(title ?? `${kind} ${id}`, MAX_VALUE);

const countRows = (count: number): string => `${count} ${count === 1 ? 'row' : 'rows'}`;

/** `31 rows: 2 created, 27 changed, 2 deleted` */
function describeRows(rows: OperatorSet['rows']): string {
  const kinds = Object.entries(rows).filter(([, count]) => count > 0);
  const all = kinds.reduce((sum, [, count]) => sum + count, 0);
  return `${countRows(all)}: ${kinds.map(([kind, count]) => `${count} ${kind}`).join(', ') || 'none'}`;
}
