import type { OverviewAnswer } from '../../src/controllers/overview.controller.js';
import type { StateAnswer } from '../../src/controllers/status.controller.js';
import { CONSOLE, toAddress as toPlainAddress, useAddress } from '../address.js';
import { RankedBars, TimeChart } from '../charts.js';
import { Heading, Loaded, Notice, Time } from '../components.js';
import {
  formatCost,
  formatCount,
  shortNumber,
  formatBytes,
  formatMilliseconds,
  formatNumber,
} from '../formats.js';
import { type Answer, useAnswer } from '../server.js';
import { Tile } from '../tile.js';
import { readWindow, WindowSwitch } from '../window-switch.js';

const REFRESH_INTERVAL = 10_000;
/** Bars of one list. */
const MAX_BARS = 8;

/** What happened lately, and what waits. */
export function OverviewPage({ state }: { readonly state: Answer<StateAnswer> }) {
  const { filters } = useAddress();
  const chosen = readWindow(filters);
  const overview = useAnswer<OverviewAnswer>(`api/overview?window=${chosen}`, REFRESH_INTERVAL);
  return (
    <>
      <Heading
        aside={
          <WindowSwitch chosen={chosen} toAddress={(window) => toPlainAddress('overview', { window })} />
        }
      >
        Overview
      </Heading>
      <Loaded of={overview}>
        {(value) => <Charts overview={value} refuses={state.value?.refusals.all != null} />}
      </Loaded>
      <UsageDownloads />
    </>
  );
}

/** Days of each file. */
const USAGE_DAYS = [7, 31];

/** Calls and cost by day, agent and tenant, for a spreadsheet. */
function UsageDownloads() {
  const to = new Date();
  const sinceDay = (days: number) => new Date(to.getTime() - days * 86_400_000).toISOString().slice(0, 10);
  return (
    <section class="panel">
      <h2>Usage</h2>
      <p class="quiet">
        Calls, rows, tokens and cost by day, agent and tenant, as the audit records have them.
      </p>
      <p class="buttons">
        {USAGE_DAYS.map((days) => (
          <a
            key={days}
            class="button"
            href={`${CONSOLE}/api/audit/usage?${new URLSearchParams({ from: sinceDay(days), to: to.toISOString() }).toString()}`}
            download
          >
            {`CSV of ${days} days`}
          </a>
        ))}
      </p>
    </section>
  );
}

function Charts(props: { readonly overview: OverviewAnswer; readonly refuses: boolean }) {
  const { overview, refuses } = props;
  const { totals, buckets, waiting, from, to } = overview;
  /** Of the records of the window that is shown. */
  const toAddress = (page: 'audit', filters: Readonly<Record<string, string>>) =>
    toPlainAddress(page, { ...filters, from, to });
  const times = buckets.map(({ at }) => Date.parse(at));
  const countedSince = Date.parse(overview.counted_since);
  const common = { times, interval: overview.bucket_seconds, countedSince };
  const share = totals.calls === 0 ? 0 : (totals.refused / totals.calls) * 100;
  const formatCapped = (count: number | null, isCapped: boolean) =>
    count === null ? '–' : `${formatNumber(count)}${isCapped ? '+' : ''}`;
  return (
    <>
      {countedSince > Date.parse(from) && (
        <Notice>
          Counting since <Time iso={overview.counted_since} />: what was before is hatched, and known to the
          audit alone.
        </Notice>
      )}
      <ul class="tiles">
        {(waiting.approvals !== null || overview.degraded) && (
          <Tile
            name="Approvals waiting"
            value={formatCapped(waiting.approvals, waiting.approvals_capped)}
            note={waiting.approvals === null ? 'not known now' : undefined}
            href="#/approvals"
            bad={waiting.approvals !== null && waiting.approvals > 0}
          />
        )}
        <Tile
          name="Tasks open"
          value={formatCapped(waiting.tasks, waiting.tasks_capped)}
          note={waiting.exports === null ? 'not known now' : formatCount(waiting.exports, 'export')}
          href="#/work"
        />
        <Tile
          name="Calls"
          value={shortNumber(totals.calls)}
          href={toAddress('audit', { type: 'tool_call' })}
        />
        <Tile
          name="Refused or failed"
          value={shortNumber(totals.refused)}
          note={`${formatNumber(share)} % of calls`}
          href={toAddress('audit', { outcome: 'failure' })}
          bad={refuses}
        />
        <Tile
          name="Latency p50"
          value={formatMilliseconds(totals.p50_ms)}
          note={`p95 ${formatMilliseconds(totals.p95_ms)}`}
        />
        <Tile
          name="Rows"
          value={shortNumber(totals.rows)}
          note={`${formatBytes(totals.result_bytes)} of results`}
        />
        <Tile name="Tokens" value={shortNumber(totals.tokens)} note="estimated" />
        {totals.cost > 0 && <Tile name="Cost" value={formatCost(totals.cost)} note="of tokens, estimated" />}
        <Tile
          name="Sign-ins refused"
          value={shortNumber(totals.sign_ins_refused)}
          href={toAddress('audit', { type: 'authentication', outcome: 'failure' })}
        />
      </ul>
      {totals.calls === 0 && (
        <p class="empty">
          No call in this time. <a href="#/explain">Explain a call</a> says what an agent may do before its
          client connects; earlier calls are in the <a href="#/audit">audit</a>.
        </p>
      )}
      <div class="charts">
        <TimeChart
          {...common}
          title="Calls"
          form="bars"
          whole
          format={shortNumber}
          series={[
            { name: 'passed', colour: '1', values: buckets.map(({ calls, refused }) => calls - refused) },
            { name: 'refused or failed', colour: 'bad', values: buckets.map(({ refused }) => refused) },
          ]}
        />
        <TimeChart
          {...common}
          title="Latency"
          form="lines"
          format={formatMilliseconds}
          series={[
            { name: 'p95', colour: '2', values: buckets.map(({ p95_ms: value }) => value) },
            { name: 'p50', colour: '1', values: buckets.map(({ p50_ms: value }) => value) },
          ]}
        />
        <TimeChart
          {...common}
          title="Rows"
          form="bars"
          whole
          format={shortNumber}
          series={[{ name: 'rows', colour: '3', values: buckets.map(({ rows }) => rows) }]}
        />
        <TimeChart
          {...common}
          title="Tokens of answers"
          form="bars"
          whole
          format={shortNumber}
          series={[{ name: 'tokens', colour: '2', values: buckets.map(({ tokens }) => tokens) }]}
        />
      </div>
      <div class="columns even four">
        <RankedBars
          title="Refused or failed by gate"
          empty="No call was refused or failed."
          colour="bad"
          format={formatNumber}
          rows={overview.gates
            .slice(0, MAX_BARS)
            .map(({ name, refused }) => ({ name, value: refused, href: toAddress('audit', { gate: name }) }))}
        />
        <RankedBars
          title="Refused or failed by agent"
          empty="No call was refused or failed."
          colour="bad"
          format={formatNumber}
          rows={overview.agents
            .filter(({ refused }) => refused > 0)
            .toSorted((one, other) => other.refused - one.refused)
            .slice(0, MAX_BARS)
            .map(({ name, calls, refused }) => ({
              name,
              value: refused,
              note: `of ${formatNumber(calls)}`,
              href: toAddress('audit', { agent: name, outcome: 'failure' }),
            }))}
        />
        <RankedBars
          title="Calls by agent"
          empty="No call was made."
          colour="1"
          format={formatNumber}
          rows={overview.agents.slice(0, MAX_BARS).map(({ name, calls, tokens, cost }) => ({
            name,
            value: calls,
            note: `${shortNumber(tokens)} tokens${cost > 0 ? `, ${formatCost(cost)}` : ''}`,
            href: toPlainAddress('agent', { name, window: overview.window }),
          }))}
        />
        <RankedBars
          title="Calls by class"
          empty="No call named a class."
          colour="1"
          format={formatNumber}
          rows={overview.classes
            .slice(0, MAX_BARS)
            .map(({ name, calls }) => ({ name, value: calls, href: toAddress('audit', { class: name }) }))}
        />
      </div>
      <p class="quiet counted">
        {overview.scope === 'replicas'
          ? 'Of all replicas. Calls are added within five seconds.'
          : overview.degraded
            ? 'Of this replica alone, since its start: the shared state does not answer.'
            : 'Of this replica alone, since its start: no state is shared.'}
      </p>
    </>
  );
}
