import { useEffect, useRef, useState } from 'preact/hooks';
import { CONSOLE, narrowAddress, useAddress } from '../address.js';
import { announce, Field, Heading, Select } from '../components.js';
import { formatCount, formatNumber } from '../formats.js';
import {
  type ConsoleRecord,
  isRefused,
  type Keyed,
  addKeys,
  mentions,
  RecordTable,
  type Searched,
  describeStore,
} from '../records.js';
import { ask, SignedOut } from '../server.js';
import { usePageShortcuts } from '../shortcuts.js';

/** Records that are kept, and that are shown at once. */
const MAX_KEPT_ROWS = 500;
const MAX_SHOWN_ROWS = 150;

/** Records that are asked for when the stream begins: those from before are not in it. */
const FIRST_ROWS = 50;

/** Tells whether two records are one: the stream and the search hold the same. */
const identify = ({
  at,
  type,
  tool,
  action,
  principal,
  duration_ms: duration,
  request_id: request,
}: ConsoleRecord) => JSON.stringify([at, type, tool, action, principal, duration, request]);

interface Batch {
  readonly records: readonly ConsoleRecord[];
  readonly missed: number;
}

interface Calls {
  /** Newest first. */
  readonly records: readonly Keyed[];
  /** What came while the page was paused. */
  readonly held: readonly Keyed[];
  readonly missed: number;
  /** Where those come from that were there before the stream began. */
  readonly before?: Searched;
}

/** Kept while another page is open, and shown again on return. A sign-in clears it. */
let lastCalls: Calls = { records: [], held: [], missed: 0 };
export function forgetLiveCalls(): void {
  lastCalls = { records: [], held: [], missed: 0 };
}

const timeOf = ({ at }: ConsoleRecord) => String(at);

/** Both in one list. Where the oldest of the latest records is new, others may lie before it: what is older is left to the audit. */
function withLatest(calls: Calls, entries: readonly ConsoleRecord[], isPaused: boolean): Calls {
  const before = [...calls.held, ...calls.records];
  const known = new Set(before.map(({ record }) => identify(record)));
  const oldest = entries.length < FIRST_ROWS ? undefined : entries.at(-1);
  const isGap = oldest !== undefined && !known.has(identify(oldest));
  const kept = isGap ? before.filter(({ record }) => timeOf(record) >= timeOf(oldest)) : before;
  const fresh = addKeys(entries.filter((record) => !known.has(identify(record))));
  const all = [...kept, ...fresh].toSorted((one, other) =>
    timeOf(other.record).localeCompare(timeOf(one.record), 'en'),
  );
  const newest = isPaused ? calls.records[0]?.record : undefined;
  const isHeld = ({ record }: Keyed) => newest !== undefined && timeOf(record) > timeOf(newest);
  return {
    ...calls,
    records: all.filter((one) => !isHeld(one)).slice(0, MAX_KEPT_ROWS),
    held: all.filter(isHeld),
  };
}

type Connection = 'connecting' | 'watching' | 'not connected';

/**
 * Follows the stream, and connects again after an error.
 * @param begin called whenever it begins: what was recorded until then is not in it
 */
function useStream(receive: (batch: Batch) => void, begin: (leaving: AbortSignal) => void): Connection {
  const [connection, setConnection] = useState<Connection>('connecting');
  const latest = useRef({ receive, begin });
  latest.current = { receive, begin };
  useEffect(() => {
    let source: EventSource;
    let again: ReturnType<typeof setTimeout> | undefined;
    const leaving = new AbortController();
    const connect = () => {
      source = new EventSource(`${CONSOLE}/api/live`);
      source.addEventListener('watching', () => {
        setConnection('watching');
        latest.current.begin(leaving.signal);
      });
      source.addEventListener('records', (event) =>
        latest.current.receive(JSON.parse((event as MessageEvent<string>).data) as Batch),
      );
      source.addEventListener('error', () => {
        setConnection('not connected');
        // After a refusal a browser does not connect again by itself; the session may be over.
        if (source.readyState === EventSource.CLOSED) again = setTimeout(reconnect, 3_000);
      });
    };
    const reconnect = () => {
      ask('api/status', leaving.signal).then(connect, (error: unknown) => {
        if (!leaving.signal.aborted && !(error instanceof SignedOut)) connect();
      });
    };
    connect();
    return () => {
      leaving.abort();
      clearTimeout(again);
      source.close();
    };
  }, []);
  return connection;
}

const VERDICTS = [
  ['', 'all'],
  ['refused', 'refused or failed'],
  ['ok', 'ok'],
] as const;

/** Calls as they come, of every replica. */
export function LivePage() {
  const { filters } = useAddress();
  const [search, verdict] = [filters.get('search') ?? '', filters.get('verdict') ?? ''];
  const [calls, setCalls] = useState<Calls>(() => ({
    ...lastCalls,
    records: [...lastCalls.held, ...lastCalls.records],
    held: [],
  }));
  const [isPaused, setPaused] = useState(false);
  useEffect(() => void (lastCalls = calls), [calls]);

  const receive = ({ records, missed }: Batch) => {
    setCalls((before) => {
      const known = new Set(before.records.slice(0, FIRST_ROWS).map(({ record }) => identify(record)));
      const fresh = addKeys(records.filter((record) => !known.has(identify(record)))).reverse();
      return {
        ...before,
        missed: before.missed + missed,
        ...(isPaused
          ? { held: [...fresh, ...before.held].slice(0, MAX_KEPT_ROWS) }
          : { records: [...fresh, ...before.records].slice(0, MAX_KEPT_ROWS) }),
      };
    });
  };
  const begin = (leaving: AbortSignal) => {
    ask<{ entries: readonly ConsoleRecord[]; searched?: Searched }>(
      `api/audit?limit=${FIRST_ROWS}`,
      leaving,
    ).then(
      ({ entries, searched }) =>
        setCalls((before) => ({
          ...withLatest(before, entries, isPaused),
          ...(searched && { before: searched }),
        })),
      // The calls that come are shown all the same.
      () => undefined,
    );
  };
  const connection = useStream(receive, begin);
  const toggle = () => {
    announce(isPaused ? 'continued' : 'paused');
    if (isPaused)
      setCalls(({ records, held, ...rest }) => ({
        ...rest,
        records: [...held, ...records].slice(0, MAX_KEPT_ROWS),
        held: [],
      }));
    setPaused(!isPaused);
  };
  usePageShortcuts({ p: { does: 'pause or continue', run: toggle } });

  const { records, held, missed, before } = calls;
  const found = records.filter(
    ({ record }) =>
      (verdict === '' || isRefused(record) === (verdict === 'refused')) && mentions(record, search.trim()),
  );
  const parts = [
    `${formatNumber(records.length)} seen`,
    `${records.filter(({ record }) => isRefused(record)).length} refused or failed`,
    ...(found.length === records.length ? [] : [`${found.length} match`]),
    ...(found.length > MAX_SHOWN_ROWS ? [`the latest ${MAX_SHOWN_ROWS} shown`] : []),
    ...(missed > 0 ? [`${formatCount(missed, 'record')} too many to show`] : []),
    ...(held.length > 0 ? [`${held.length} held back`] : []),
    ...(before?.scope === 'replica' ? [`the first ones ${describeStore(before)}`] : []),
  ];
  const kind = connection === 'watching' ? 'good' : connection === 'connecting' ? 'plain' : 'bad';
  return (
    <>
      <Heading
        aside={
          <p class="state" role="status">
            <span class={`dot ${kind}`} aria-hidden="true" />
            {connection}
          </p>
        }
      >
        Live calls
      </Heading>
      <form class="bar panel" role="search" onSubmit={(event) => event.preventDefault()}>
        <Field label="Search">
          <input
            type="search"
            autoComplete="off"
            value={search}
            onInput={(event) => narrowAddress({ search: event.currentTarget.value })}
          />
        </Field>
        <Select
          label="Verdict"
          value={verdict}
          options={VERDICTS}
          change={(value) => narrowAddress({ verdict: value })}
        />
        <button type="button" class="toggle" aria-pressed={isPaused} onClick={toggle}>
          {isPaused ? 'Continue' : 'Pause'}
        </button>
      </form>
      <p class="quiet counted">
        {records.length + held.length === 0 ? (
          <>
            No call was recorded yet. The next one appears here at once;{' '}
            <a href="#/explain">explain a call</a> says what an agent may do.
          </>
        ) : (
          parts.join(' · ')
        )}
      </p>
      <RecordTable caption="Calls, newest first" records={found.slice(0, MAX_SHOWN_ROWS)} />
    </>
  );
}
