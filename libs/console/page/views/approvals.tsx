import type { ApprovalView, DetailedApprovalView } from '#approvals';
import type { ApprovalsAnswer } from '../../src/controllers/approvals.controller.js';
import { useEffect, useRef, useState } from 'preact/hooks';
import { announce, Badge, Failure, Heading, Notice, Time } from '../components.js';
import { timeUntil } from '../formats.js';
import { NotificationSwitch } from '../notifications.js';
import { type Answer, ask } from '../server.js';
import { usePageShortcuts } from '../shortcuts.js';
import { DecidedApprovals, useLeftCallers } from './decided-approvals.js';
import { Decision, type Outcome } from './decision.js';
import { Change, findClass, describeObject, PreviewAsJson } from './proposed-change.js';

/** Calls that wait for a decision. @param pending the list that the shell also counts; null: this operator decides none */
export function ApprovalsPage({ pending }: { readonly pending: Answer<ApprovalsAnswer> | null }) {
  if (pending !== null) return <PendingApprovals pending={pending} />;
  return (
    <>
      <Heading>Approvals</Heading>
      <Notice>
        An operator decides approvals only if its agent is also named in <code>approvals.approvers</code>.
      </Notice>
      <DecidedApprovals changed={0} />
    </>
  );
}

interface Decided extends Outcome {
  readonly id: string;
}

const NO_LONGER_PENDING: Outcome = {
  kind: 'plain',
  badge: 'over',
  text: 'This call no longer waits: somebody else decided it, or its time is over.',
};

/**
 * The list never moves by itself: a card keeps its place when it is decided or no longer waits, and new ones come last. Those
 * that are done leave when the operator says so or leaves the page.
 */
function PendingApprovals({ pending }: { readonly pending: Answer<ApprovalsAnswer> }) {
  const [decided, setDecided] = useState<readonly Decided[]>([]);
  const [cards, setCards] = useState<readonly ApprovalView[]>([]);
  const listed = pending.value?.approvals;
  const findOutcome = (id: string): Outcome | null =>
    decided.find((one) => one.id === id) ?? (listed?.some((one) => one.id === id) ? null : NO_LONGER_PENDING);
  const left = useLeftCallers((listed?.length ?? 0) > 0);
  useEffect(() => {
    const known = new Set([...cards, ...decided].map(({ id }) => id));
    const fresh = listed?.filter(({ id }) => !known.has(id)) ?? [];
    if (fresh.length > 0) setCards([...cards, ...fresh]);
  }, [listed]);
  usePageShortcuts({ n: { does: 'go to the next call that waits', run: focusNext } });
  const settle = ({ id, tool, requester }: ApprovalView, approved: boolean) => {
    const badge = approved ? 'approved' : 'denied';
    const text = `${tool} was ${badge} for ${requester.agent}`;
    setDecided([
      { id, text, badge, kind: approved ? 'good' : 'plain', at: new Date().toISOString() },
      ...decided,
    ]);
    announce(text);
    pending.reload();
  };
  const done = cards.filter(({ id }) => findOutcome(id) !== null).length;
  return (
    <>
      <Heading aside={<NotificationSwitch />}>Approvals</Heading>
      <Failure error={pending.error} retry={pending.reload} />
      <div class="list-head">
        <h2>Waiting{listed && pending.error === null && ` (${cards.length - done})`}</h2>
        <button
          type="button"
          class={done === 0 ? 'absent' : undefined}
          onClick={() => setCards(cards.filter(({ id }) => findOutcome(id) === null))}
        >
          Remove {done} decided
        </button>
      </div>
      {listed === undefined && pending.error === null && <p class="quiet">Loading…</p>}
      {listed?.length === 0 && cards.length === 0 && pending.error === null && (
        <p class="empty">
          Nothing waits for a decision. Which calls do is said by <code>policy.requireApprovalFor</code>:{' '}
          <a href="#/explain">explain a call</a> says of one whether a person has to approve it.
        </p>
      )}
      <ul class="cards">
        {cards.map((call) => (
          <Card
            key={call.id}
            call={call}
            outcome={findOutcome(call.id)}
            leftAt={left.get(call.id)}
            onDecided={(approved) => settle(call, approved)}
          />
        ))}
      </ul>
      <DecidedApprovals changed={done} />
    </>
  );
}

function focusNext(): void {
  const all = [...document.querySelectorAll<HTMLElement>('.cards > .card')];
  const at = all.findIndex((card) => card.contains(document.activeElement));
  const inTurn = [...all.slice(at + 1), ...all.slice(0, at + 1)];
  inTurn.find((card) => !card.classList.contains('done'))?.focus();
}

const LEFT = 'Nobody waits for the answer any more: an approval counts only if the same call is made again';

interface CardProps {
  readonly call: ApprovalView;
  readonly outcome: Outcome | null;
  /** When its caller stopped waiting. */
  readonly leftAt: string | undefined;
  readonly onDecided: (approved: boolean) => void;
}

function Card({ call, outcome, leftAt, onDecided: decided }: CardProps) {
  const { id, tool, permission, requester } = call;
  const content = useRef<HTMLDivElement>(null);
  const [loaded, setLoaded] = useState<{ readonly detailed: DetailedApprovalView; readonly round: number }>();
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const [, setTick] = useState(0);
  useEffect(() => {
    const leaving = new AbortController();
    ask<DetailedApprovalView>(`api/approvals/${encodeURIComponent(id)}`, leaving.signal).then(
      (detailed) => {
        setLoaded({ detailed, round });
        setError(null);
      },
      (failed) => {
        if (!leaving.signal.aborted) setError(failed);
      },
    );
    return () => leaving.abort();
  }, [id, round]);
  useEffect(() => {
    // Updates the remaining time.
    const timer = setInterval(() => setTick((last) => last + 1), 5_000);
    return () => clearInterval(timer);
  }, []);
  const preview = loaded?.detailed.preview;
  const className = call.class_name ?? (preview && findClass(preview));
  const title = `${tool}${className ? ` on ${className}` : ''} for ${requester.agent}`;
  return (
    <li class={outcome ? 'card done' : 'card'} tabIndex={-1} aria-label={title}>
      <div ref={content} class="read">
        <div class="card-head">
          <h3>{tool}</h3>
          {className && <span class="class-name">{className}</span>}
          {preview && describeObject(preview) !== '' && <code>{describeObject(preview)}</code>}
          <Badge kind={permission === 'admin' ? 'bad' : 'busy'}>{permission}</Badge>
          {/* Has its place before it is shown: nothing that is read moves. */}
          <span class={leftAt === undefined ? 'absent' : undefined} title={LEFT}>
            <Badge kind="busy">caller left</Badge>
          </span>
          <span class={outcome ? 'ends absent' : 'ends'}>ends in {timeUntil(call.expires_at)}</span>
        </div>
        <p class="asker">
          <strong>{requester.agent}</strong> <span class="quiet">{requester.principal}</span>{' '}
          <span class="quiet">
            requested at <Time iso={call.requested_at} />
          </span>
        </p>
        <Failure error={error} retry={() => setRound(round + 1)} />
        {preview ? <Change tool={tool} preview={preview} /> : error === null && <p class="quiet">Loading…</p>}
      </div>
      {preview && <PreviewAsJson tool={tool} preview={preview} />}
      {loaded && (
        <Decision
          key={loaded.round}
          call={loaded.detailed}
          title={title}
          content={content}
          outcome={outcome}
          onDecided={decided}
          showAgain={() => setRound(round + 1)}
        />
      )}
    </li>
  );
}
