import type { OperatorSet, UndoPreview, ViewedEntry } from '#changes';
import { useState } from 'preact/hooks';
import { toAddress } from '../address.js';
import { announce, DataTable, Failure, Field, Notice, TextField } from '../components.js';
import { formatCount } from '../formats.js';
import { send, useRequest } from '../server.js';
import { describeSize, SetRows } from './set-rows.js';

interface UndoProps {
  readonly target: object;
  readonly onUndone: () => void;
}

/** First what would be taken back, its conflicts before all else; then the button that does. */
export function Undo({ target, onUndone }: UndoProps) {
  const [preview, setPreview] = useState<UndoPreview>();
  const [done, setDone] = useState<OperatorSet>();
  const [skips, setSkips] = useState(false);
  const { busy, error, run } = useRequest();
  const look = () =>
    run(async () => {
      setDone(undefined);
      setPreview(await send<UndoPreview>('POST', 'api/changes/undo', target));
    });
  const undo = (digest: string) =>
    run(async () => {
      const given = { ...target, digest, skip_conflicts: skips };
      setDone(await send<OperatorSet>('POST', 'api/changes/undo', given));
      announce('The changes are taken back');
      setPreview(undefined);
      onUndone();
    });
  if (!preview)
    return (
      <>
        <Failure error={error} />
        {done && (
          <Notice kind="good">
            The changes are taken back: {describeSize(done.rows)}.{' '}
            <a href={toAddress('changes', { set: done.change_set })}>What was taken back</a>
          </Notice>
        )}
        <p class="buttons">
          <button type="button" disabled={busy} onClick={() => void look()}>
            Show what would be taken back
          </button>
        </p>
      </>
    );
  const { conflicts, entries, rows, digest, change_sets: sets, unnamed_sets: unnamed = 0 } = preview;
  return (
    <>
      {unnamed > 0 && (
        <Notice>
          {`Rows of which no key is known stay as they are: ${formatCount(unnamed, 'change set')} of this time.`}
        </Notice>
      )}
      {conflicts.length > 0 && (
        <>
          <Notice kind="bad">{`${formatCount(conflicts.length, 'row')} cannot be taken back.`}</Notice>
          <Conflicts rows={conflicts} />
          {entries.length > 0 && (
            <p>
              <label>
                <input
                  type="checkbox"
                  checked={skips}
                  onChange={(event) => setSkips(event.currentTarget.checked)}
                />{' '}
                Leave them out
              </label>
            </p>
          )}
        </>
      )}
      {entries.length > 0 && (
        <p>{`Taking back ${formatCount(sets.length, 'change set')}: ${describeSize(rows)}`}</p>
      )}
      <SetRows entries={entries} />
      <Failure error={error} />
      <p class="buttons">
        <button
          type="button"
          class="main"
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

function Conflicts({ rows }: { readonly rows: readonly ViewedEntry[] }) {
  return (
    <DataTable
      caption="Rows that cannot be taken back"
      columns={['Class', 'Row', 'Why']}
      rows={rows.map(({ class_name: className, object_id: id, conflict }) => [
        className ?? <em class="quiet">hidden</em>,
        id === undefined ? '' : <code>{id}</code>,
        conflict,
      ])}
    />
  );
}

export interface UndoTime {
  readonly agent: string;
  /** Name of the credential that wrote; empty: any. */
  readonly keyName: string;
  /** As an input of this browser shows it. */
  readonly since: string;
  readonly until: string;
}

/** Takes back what an agent wrote within a time. @param begun what the inputs begin with */
export function UndoByTime({ begun, onUndone }: { readonly begun: UndoTime; readonly onUndone: () => void }) {
  const [given, setGiven] = useState(begun);
  const { agent, keyName, since, until } = given;
  const input = (name: 'since' | 'until', label: string) => (
    <Field label={label}>
      <input
        type="datetime-local"
        step="1"
        value={given[name]}
        onInput={(event) => setGiven({ ...given, [name]: event.currentTarget.value })}
      />
    </Field>
  );
  const target = {
    agent: agent.trim(),
    ...(keyName.trim() !== '' && { key: keyName.trim() }),
    since: toIso(since),
    ...(until !== '' && { until: toIso(until) }),
  };
  return (
    <section class="panel apart" aria-label="Undo by agent and time">
      {/* What was searched for stays in view, unless it is of an agent. */}
      <details open={begun.agent !== ''}>
        <summary>
          <h2>Undo by agent and time</h2>
        </summary>
        <div class="grid">
          <TextField
            label="Agent that wrote"
            list="known-agents"
            value={agent}
            onInput={(event) => setGiven({ ...given, agent: event.currentTarget.value })}
          />
          <TextField
            label="Key (empty: any)"
            value={keyName}
            onInput={(event) => setGiven({ ...given, keyName: event.currentTarget.value })}
          />
          {input('since', 'Since')}
          {input('until', 'Before (empty: now)')}
        </div>
        {target.agent === '' || since === '' ? (
          <p class="hint">Name the agent and since when: what would be taken back is shown first.</p>
        ) : (
          <Undo key={JSON.stringify(given)} target={target} onUndone={onUndone} />
        )}
      </details>
    </section>
  );
}

const toIso = (local: string): string => {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : at.toISOString();
};
