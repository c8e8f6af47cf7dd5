import { useMemo } from 'preact/hooks';
import type { AgentAnswer } from '../../src/controllers/agents.controller.js';
import type { AuditAnswer } from '../../src/controllers/audit.controller.js';
import type { OverviewAnswer } from '../../src/controllers/overview.controller.js';
import type { StateAnswer } from '../../src/controllers/status.controller.js';
import { toAddress, useAddress } from '../address.js';
import { Badge, DataTable, Facts, Failure, Heading, Loaded, Notice, Time } from '../components.js';
import {
  formatBytes,
  formatCost,
  formatCount,
  formatMilliseconds,
  formatNumber,
  shortNumber,
  valueText,
} from '../formats.js';
import { addKeys, type ConsoleRecord, describeStore, RecordTable } from '../records.js';
import { type Answer, Refusal, useAnswer } from '../server.js';
import { Tile } from '../tile.js';
import { readWindow, WindowSwitch } from '../window-switch.js';
import { SuspensionButton, SuspensionState } from './suspended-agents.js';

const REFRESH_INTERVAL = 10_000;
/** Records of each table. */
const MOST_RECORDS = 20;
/** Callers whose use of the limits is shown. */
const MOST_CALLERS = 10;

type Records = Omit<AuditAnswer, 'entries'> & { readonly entries: readonly ConsoleRecord[] };

/** One agent: who it is, what it used and did lately, and the button that ends it. */
export function AgentPage({ state }: { readonly state: Answer<StateAnswer> }) {
  const { filters } = useAddress();
  const name = filters.get('name') ?? '';
  const chosen = readWindow(filters);
  const isRefused = state.value?.refusals.agents.some((one) => one.name === name) ?? false;
  return (
    <>
      <Heading
        aside={<WindowSwitch chosen={chosen} toAddress={(window) => toAddress('agent', { name, window })} />}
      >
        {name === '' ? 'Agent' : `Agent ${name}`}
      </Heading>
      {name === '' ? (
        <p class="empty">
          No agent is chosen. <a href="#/policy">Choose one in the policy</a>
        </p>
      ) : (
        <Sections key={`${name} ${chosen}`} name={name} chosen={chosen} isRefused={isRefused} />
      )}
    </>
  );
}

interface SectionsProps {
  readonly name: string;
  readonly chosen: string;
  /** Most of its calls, lately. */
  readonly isRefused: boolean;
}

function Sections({ name, chosen, isRefused }: SectionsProps) {
  const overview = useAnswer<OverviewAnswer>(`api/overview?window=${chosen}`, REFRESH_INTERVAL);
  // The time of the first answer: records are searched once, not every few seconds.
  const times = useMemo(
    () => overview.value && { from: overview.value.from, to: overview.value.to },
    [overview.value === undefined],
  );
  const search = (more: Readonly<Record<string, string>>) =>
    times
      ? `api/audit?${new URLSearchParams({ agent: name, type: 'tool_call', limit: String(MOST_RECORDS), from: times.from, ...more }).toString()}`
      : null;
  const calls = useAnswer<Records>(search({}));
  const refusals = useAnswer<Records>(search({ outcome: 'failure' }));
  const keyNames = new Map(
    calls.value?.entries.map(({ principal, key_name: name }) => [String(principal), valueText(name)]),
  );
  const callers = [...keyNames.keys()].slice(0, MOST_CALLERS);
  const asked = new URLSearchParams(callers.map((principal) => ['principal', principal])).toString();
  const agent = useAnswer<AgentAnswer>(`api/agents/${encodeURIComponent(name)}?${asked}`, REFRESH_INTERVAL);
  const toRecords = (more: Readonly<Record<string, string>> = {}) =>
    toAddress('audit', { agent: name, ...times, ...more });
  return (
    <>
      {agent.error instanceof Refusal && agent.error.status === 404 ? (
        <p class="empty">
          No agent of this name is configured. <a href="#/policy">Choose one in the policy</a>
        </p>
      ) : (
        <Loaded of={agent}>
          {(value) => (
            <>
              <Identity agent={value} onChanged={agent.reload} />
              <h2>Limits and how much of them is used</h2>
              <Limits agent={value} keyNames={keyNames} />
              <h2>Keys</h2>
              <Keys agent={value} toRecords={toRecords} />
            </>
          )}
        </Loaded>
      )}
      <h2>What it used</h2>
      <Loaded of={overview}>
        {(value) => <Use overview={value} name={name} isRefused={isRefused} toRecords={toRecords} />}
      </Loaded>
      <h2>Latest calls</h2>
      <Found of={calls} caption={`Latest calls of ${name}`} empty="It made no call in this time." />
      <h2>Latest refusals and failures</h2>
      <Found
        of={refusals}
        caption={`Latest refusals of ${name}`}
        empty="None of its calls was refused or failed in this time."
      />
      <p class="buttons">
        <a class="button" href={toRecords()}>
          All its records
        </a>
        <a class="button" href={toAddress('changes', { agent: name, since: times?.from })}>
          What it changed
        </a>
        <a class="button" href={toAddress('explain', { agent: name })}>
          Explain a call
        </a>
      </p>
    </>
  );
}

function Identity({ agent, onChanged }: { readonly agent: AgentAnswer; readonly onChanged: () => void }) {
  const { definition, scope } = agent;
  return (
    <section class="panel">
      <Facts
        pairs={[
          ['state', <SuspensionState agent={agent} />],
          ...(definition
            ? ([
                ['permission level', definition.permissions],
                ['tenant', definition.tenant_id === null ? 'bound to none' : String(definition.tenant_id)],
              ] as const)
            : []),
          ...(definition && definition.permissions !== 'readonly'
            ? [
                [
                  'writes',
                  definition.writes === 'proposed' ? 'are proposed to a person' : 'happen at once',
                ] as const,
              ]
            : []),
        ]}
      />
      {scope === 'process' && agent.suspended && (
        <Notice>Without Redis a suspension counts for this process alone, until it ends.</Notice>
      )}
      <div class="buttons">
        <a class="button" href={toAddress('policy', { agent: agent.name })}>
          What it may see
        </a>
        <SuspensionButton agent={agent} scope={scope} onChanged={onChanged} />
      </div>
    </section>
  );
}

interface LimitsProps {
  readonly agent: AgentAnswer;
  /** By principal. */
  readonly keyNames: ReadonlyMap<string, string>;
}

/** The limits of an agent for each of its callers, and how much of them is used now. */
function Limits({ agent: { definition, used }, keyNames }: LimitsProps) {
  if (!definition) return <p class="empty">It is not configured here.</p>;
  const { rate, budget } = definition;
  const limits = budget?.limits ?? {};
  const formats = {
    calls: formatNumber,
    rows: formatNumber,
    bytes: formatBytes,
    databaseTime: formatMilliseconds,
  };
  const quantities = (['calls', 'rows', 'bytes', 'databaseTime'] as const).filter(
    (quantity) => limits[quantity] !== undefined,
  );
  const words = { calls: 'Budget of calls', rows: 'Rows', bytes: 'Bytes', databaseTime: 'Database time' };
  const written = [
    rate === null
      ? 'Its application counts its calls.'
      : `${formatCount(rate.limit, 'call')} of each caller in ${formatNumber(rate.window)} s.`,
    budget === null ? 'No data budget.' : `Data budget of each caller in ${formatNumber(budget.window)} s.`,
  ].join(' ');
  if (used === null)
    return (
      <>
        <p class="quiet">{written}</p>
        <Notice kind="busy">How much is used is not known: the shared state does not answer.</Notice>
      </>
    );
  if (used.length === 0)
    return (
      <>
        <p class="quiet">{written}</p>
        <p class="empty">Nobody called as this agent in this time.</p>
      </>
    );
  return (
    <>
      <p class="quiet">{written}</p>
      <DataTable
        caption="Limits by caller"
        columns={['Caller', 'Calls', ...quantities.map((quantity) => words[quantity])]}
        rows={used.map((caller) => [
          <>
            {caller.principal} <span class="quiet">{keyNames.get(caller.principal)}</span>
          </>,
          caller.rate === null ? (
            'not known here'
          ) : (
            <Share used={caller.rate.used} limit={caller.rate.limit} format={formatNumber} />
          ),
          ...quantities.map((quantity) => (
            <Share
              used={caller.budget?.[quantity] ?? 0}
              limit={limits[quantity] ?? 0}
              format={formats[quantity]}
            />
          )),
        ])}
      />
    </>
  );
}

function Share(props: {
  readonly used: number;
  readonly limit: number;
  readonly format: (amount: number) => string;
}) {
  const { used, limit, format } = props;
  const share = Math.min(100, Math.round((used / limit) * 100));
  const text = `${format(used)} of ${format(limit)} (${share} %)`;
  return share >= 100 ? <Badge kind="bad">{text}</Badge> : <>{text}</>;
}

interface KeysProps {
  readonly agent: AgentAnswer;
  readonly toRecords: (more: Readonly<Record<string, string>>) => string;
}

function Keys({ agent: { keys }, toRecords }: KeysProps) {
  if (keys.length === 0)
    return <p class="empty">No rule of auth names it: the application chooses who calls as it.</p>;
  return (
    <DataTable
      caption="Keys"
      columns={['Name', 'Kind', 'Ends', 'Calls']}
      rows={keys.map(({ name, kind, expires_at: end, expired }) => [
        name ?? 'without a name',
        kind,
        end === null ? (
          'never'
        ) : (
          <>
            <Time iso={end} />
            {expired ? ' (expired)' : ''}
          </>
        ),
        name === null ? '–' : <a href={toRecords({ key: name })}>Its records</a>,
      ])}
    />
  );
}

interface UseProps extends Pick<SectionsProps, 'name' | 'isRefused'> {
  readonly overview: OverviewAnswer;
  readonly toRecords: (more: Readonly<Record<string, string>>) => string;
}

function Use({ overview, name, isRefused, toRecords }: UseProps) {
  const { calls, refused, rows, tokens, cost } = overview.agents.find((one) => one.name === name) ?? {
    calls: 0,
    refused: 0,
    rows: 0,
    tokens: 0,
    cost: 0,
  };
  return (
    <ul class="tiles">
      <Tile name="Calls" value={shortNumber(calls)} href={toRecords({ type: 'tool_call' })} />
      <Tile
        name="Refused or failed"
        value={shortNumber(refused)}
        note={calls === 0 ? undefined : `${formatNumber((refused / calls) * 100)} % of calls`}
        bad={isRefused}
        href={toRecords({ outcome: 'failure' })}
      />
      <Tile name="Rows" value={shortNumber(rows)} />
      <Tile name="Tokens" value={shortNumber(tokens)} note="estimated" />
      {overview.totals.cost > 0 && <Tile name="Cost" value={formatCost(cost)} note="of tokens, estimated" />}
    </ul>
  );
}

function Found(props: {
  readonly of: ReturnType<typeof useAnswer<Records>>;
  readonly caption: string;
  readonly empty: string;
}) {
  const { of, caption, empty } = props;
  const records = useMemo(() => addKeys(of.value?.entries ?? []), [of.value]);
  if (of.value?.entries.length === 0) return <p class="empty">{empty}</p>;
  if (of.value === undefined)
    return of.error ? <Failure error={of.error} retry={of.reload} /> : <p class="quiet">Loading…</p>;
  return (
    <>
      {of.value.searched && (
        <p class="quiet counted">
          {`${formatCount(records.length, 'record')} ${describeStore(of.value.searched)}`}
        </p>
      )}
      <RecordTable caption={caption} records={records} />
    </>
  );
}
