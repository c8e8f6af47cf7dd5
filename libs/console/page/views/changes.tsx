import type { OperatorSet } from '#changes';
import type { ApprovalsAnswer } from '../../src/controllers/approvals.controller.js';
import type { ChangeSetAnswer, ChangeSetsAnswer } from '../../src/controllers/changes.controller.js';
import type { SimulationCatalogue } from '../../src/controllers/explain.controller.js';
import type { PolicyAnswer } from '../../src/controllers/policy.controller.js';
import { useRef, useState } from 'preact/hooks';
import { narrowAddress, toAddress, useAddress } from '../address.js';
import {
  announce,
  Badge,
  DataTable,
  type Fact,
  Facts,
  Failure,
  Field,
  Heading,
  type Kind,
  Loaded,
  Select,
  Suggestions,
  TextField,
  Time,
} from '../components.js';
import { formatCount, toLocalTime } from '../formats.js';
import { type Answer, send, useAnswer, useRequest } from '../server.js';
import { cleanText } from '../shown-text.js';
import { ApprovalCard } from './approval-card.js';
import { describeDecision, NO_LONGER_PENDING, type Outcome } from './decision.js';
import { describeSize, SetRows } from './set-rows.js';
import { Undo, UndoByTime } from './undo-changes.js';

const KINDS: Readonly<Record<string, Kind>> = { applied: 'good', submitted: 'busy', open: 'busy' };
const STATES = [
  ['', 'any'],
  ['waiting', 'open or submitted'],
  ['open', 'open'],
  ['submitted', 'submitted'],
  ['applied', 'applied'],
  ['undone', 'undone'],
  ['denied', 'denied'],
  ['discarded', 'discarded'],
  ['expired', 'expired'],
] as const;
const REFRESH_INTERVAL = 15_000;
/** Milliseconds after its approval at which a set is asked for again. */
const APPLIED_WITHIN = [0, 500, 2_000];
const MAX_LISTED = 200;
const MAX_TITLE = 200;

type Pending = Answer<ApprovalsAnswer> | null;

/**
 * Change sets of agents: which there are, one row by row, its decision, and taking them back.
 * @param pending the approvals that the shell also counts; null: this operator decides none
 */
export function ChangesPage({ pending }: { readonly pending: Pending }) {
  const { filters } = useAddress();
  const id = filters.get('set');
  return id === null ? <ChangeSets /> : <OneSet key={id} id={id} pending={pending} />;
}

const FILTERS = ['agent', 'key', 'class', 'since', 'until', 'state'] as const;

function ChangeSets() {
  const { filters } = useAddress();
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, filters.get(name) ?? '']));
  const given = Object.entries(wanted).filter(([, value]) => value !== '');
  const query = new URLSearchParams([['limit', String(MAX_LISTED)], ...given]);
  const listed = useAnswer<ChangeSetsAnswer>(`api/changes?${query.toString()}`, REFRESH_INTERVAL);
  const agents = useAnswer<SimulationCatalogue>('api/agents').value?.agents ?? [];
  const classes = useAnswer<PolicyAnswer>('api/policy').value?.classes ?? [];
  const narrow = (name: string, value: string) => narrowAddress({ [name]: value.trim() });
  const text = (name: string, label: string, list?: string) => (
    // What is being typed stays when the list is loaded again.
    <TextField
      key={`${name} ${wanted[name]}`}
      label={label}
      list={list}
      defaultValue={wanted[name]}
      onChange={(event) => narrow(name, event.currentTarget.value)}
    />
  );
  const time = (name: string, label: string) => (
    <Field label={label}>
      <input
        key={wanted[name]}
        type="datetime-local"
        defaultValue={toLocalTime(wanted[name] ?? '')}
        onChange={({ currentTarget: { value } }) =>
          narrow(name, value === '' ? '' : new Date(value).toISOString())
        }
      />
    </Field>
  );
  return (
    <>
      <Heading>Changes</Heading>
      <form class="panel" role="search" onSubmit={(event) => event.preventDefault()}>
        <Suggestions id="known-agents" texts={agents.map((agent) => agent.name)} />
        <Suggestions id="known-classes" texts={classes.map((one) => one.name)} />
        <div class="grid">
          {text('agent', 'Agent', 'known-agents')}
          {text('key', 'Key')}
          {text('class', 'Class', 'known-classes')}
          {time('since', 'From')}
          {time('until', 'Until')}
          <Select
            label="State"
            value={wanted['state'] ?? ''}
            options={STATES}
            change={(value) => narrow('state', value)}
          />
        </div>
      </form>
      <UndoByTime
        key={`${wanted['agent'] ?? ''} ${wanted['key'] ?? ''} ${wanted['since'] ?? ''} ${wanted['until'] ?? ''}`}
        begun={{
          agent: wanted['agent'] ?? '',
          keyName: wanted['key'] ?? '',
          since: toLocalTime(wanted['since'] ?? ''),
          until: toLocalTime(wanted['until'] ?? ''),
        }}
        onUndone={listed.reload}
      />
      <Loaded of={listed}>
        {({ change_sets: sets, tenant_id: tenant }) => (
          <>
            <p class="quiet counted">
              {[
                formatCount(sets.length, 'change set') + (sets.length === MAX_LISTED ? ', and more' : ''),
                tenant === null ? 'of callers without a tenant' : `of the tenant ${tenant}`,
              ].join(' ')}
            </p>
            {sets.length === 0 ? <NoSet isFiltered={given.length > 0} /> : <Listed sets={sets} />}
          </>
        )}
      </Loaded>
    </>
  );
}

function NoSet({ isFiltered }: { readonly isFiltered: boolean }) {
  return (
    <p class="empty">
      {isFiltered ? (
        <>
          No change set matches. <a href="#/changes">Show all of them</a>
        </>
      ) : (
        <>
          No change set is kept. <code>writes: proposed</code> and <code>changes.record: all</code> make them.
        </>
      )}
    </p>
  );
}

function Listed({ sets }: { readonly sets: readonly OperatorSet[] }) {
  return (
    <div class="sets">
      <DataTable
        caption="Change sets, the newest first"
        columns={['Change set', 'State', 'Agent', 'Rows', 'Opened', 'Applied']}
        sortKeys={sets.map((set) => [
          describeTitle(set),
          describeState(set),
          set.agent,
          set.rows.created + set.rows.changed + set.rows.deleted,
          set.opened_at,
          set.applied_at ?? '',
        ])}
        rows={sets.map((set) => [
          <a href={toAddress('changes', { set: set.change_set })} title={describeTitle(set)}>
            {describeTitle(set)}
          </a>,
          <State set={set} />,
          <a href={toAddress('agent', { name: set.agent })} title={set.agent}>
            {set.agent}
          </a>,
          describeSize(set.rows),
          <Time iso={set.opened_at} recent />,
          set.applied_at === undefined ? '–' : <Time iso={set.applied_at} recent />,
        ])}
      />
    </div>
  );
}

function OneSet({ id, pending }: { readonly id: string; readonly pending: Pending }) {
  const path = `api/changes/${encodeURIComponent(id)}`;
  const shown = useAnswer<ChangeSetAnswer>(path, REFRESH_INTERVAL);
  const { error, run } = useRequest();
  const [decided, setDecided] = useState<Outcome | null>(null);
  const waiting = pending?.value?.approvals.find((one) => one.change_set === id);
  // It stays in its place once it is decided.
  const asked = useRef(waiting);
  asked.current ??= waiting;
  const call = asked.current;
  const discard = () =>
    run(async () => {
      await send<OperatorSet>('POST', `${path}/discard`, {});
      announce('The change set is discarded');
      shown.reload();
    });
  const settle = (approved: boolean) => {
    if (!call) return;
    const outcome = describeDecision(call, approved);
    setDecided(outcome);
    announce(outcome.text);
    pending?.reload();
    // The call that waited applies it now.
    for (const delay of APPLIED_WITHIN) setTimeout(shown.reload, delay);
  };
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
                // What is decided on stands in its card.
                ...(call
                  ? []
                  : ([
                      ['Title', describeTitle(set)],
                      ...(set.reason === undefined ? [] : [['Reason', set.reason]]),
                      ['Size', <strong>{describeSize(set.rows)}</strong>],
                      ['Agent', <Proposer set={set} />],
                    ] as Fact[])),
                ...(set.key_names.length === 0 ? [] : [['Key', set.key_names.join(', ')] as const]),
                ['State', <State set={set} />],
                ['Opened', <Time iso={set.opened_at} />],
                ...(set.applied_at === undefined
                  ? []
                  : [['Applied', <Time iso={set.applied_at} />] as const]),
                ...(set.approver === undefined ? [] : [['Approved by', set.approver] as const]),
                ...(set.undone_by === undefined
                  ? []
                  : [['Taken back by', <SetLink id={set.undone_by} />] as const]),
                ...(set.undoes ?? []).map((one) => ['Takes back', <SetLink id={one} />] as const),
              ]}
            />
            <h2>{call ? 'Decision' : 'Rows'}</h2>
            {call ? (
              <ul class="cards">
                <ApprovalCard
                  call={call}
                  outcome={decided ?? (waiting ? null : NO_LONGER_PENDING)}
                  leftAt={undefined}
                  onDecided={settle}
                />
              </ul>
            ) : (
              <SetRows entries={set.entries} />
            )}
            {set.state === 'submitted' && !call && (
              <p>
                It waits for a decision: <a href="#/approvals">approvals</a>
              </p>
            )}
            <Failure error={error} />
            {decided === null && (set.state === 'open' || set.state === 'submitted') && (
              <p class="buttons">
                <button type="button" onClick={() => void discard()}>
                  Discard
                </button>
              </p>
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

function SetLink({ id }: { readonly id: string }) {
  return <a href={toAddress('changes', { set: id })}>{id}</a>;
}

function Proposer({ set: { agent, principal } }: { readonly set: OperatorSet }) {
  return (
    <>
      <a href={toAddress('agent', { name: agent })}>{agent}</a> <span class="quiet">{principal}</span>
    </>
  );
}

const describeState = ({ state, undone_by: undoneBy }: OperatorSet): string =>
  undoneBy === undefined ? state : 'undone';

function State({ set }: { readonly set: OperatorSet }) {
  return <Badge kind={KINDS[describeState(set)] ?? 'plain'}>{describeState(set)}</Badge>;
}

/** What a set without a title is. */
const TITLES: Readonly<Record<OperatorSet['kind'], string>> = {
  proposed: 'Not submitted',
  direct: 'Written directly',
  undo: 'Undo',
};

const describeTitle = ({ title, kind, change_set: id }: OperatorSet): string =>
  cleanText(title ?? `${TITLES[kind]}, ${id}`, MAX_TITLE);
