import type { ApprovalView } from '#approvals';
import type { ApprovalsAnswer } from '../../src/controllers/approvals.controller.js';
import { useEffect, useState } from 'preact/hooks';
import { announce, Failure, Heading, Notice } from '../components.js';
import { NotificationSwitch } from '../notifications.js';
import type { Answer } from '../server.js';
import { usePageShortcuts } from '../shortcuts.js';
import { ApprovalCard } from './approval-card.js';
import { DecidedApprovals, useLeftCallers } from './decided-approvals.js';
import { describeDecision, NO_LONGER_PENDING, type Outcome } from './decision.js';

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

/**
 * The list never moves by itself: a card keeps its place when it is decided or no longer waits, and new ones come last. Those
 * that are done leave when the operator says so or leaves the page.
 */
function PendingApprovals({ pending }: { readonly pending: Answer<ApprovalsAnswer> }) {
  const [decided, setDecided] = useState<readonly Decided[]>([]);
  const [cards, setCards] = useState<readonly ApprovalView[]>([]);
  // What the shell asked for last may be seconds old.
  useEffect(() => {
    if (pending.answeredAt !== undefined) pending.reload();
  }, []);
  const listed = pending.value?.approvals;
  const isCut = pending.value?.more === true;
  // One that is not listed may be among those that the list leaves out.
  const mayWait = (id: string) => isCut || listed?.some((one) => one.id === id) === true;
  const findOutcome = (id: string): Outcome | null =>
    decided.find((one) => one.id === id) ?? (mayWait(id) ? null : NO_LONGER_PENDING);
  const left = useLeftCallers((listed?.length ?? 0) > 0);
  useEffect(() => {
    const known = new Set([...cards, ...decided].map(({ id }) => id));
    const fresh = listed?.filter(({ id }) => !known.has(id)) ?? [];
    if (fresh.length > 0) setCards([...cards, ...fresh]);
  }, [listed]);
  usePageShortcuts({ n: { does: 'go to the next call that waits', run: focusNext } });
  const settle = (call: ApprovalView, approved: boolean) => {
    const outcome = describeDecision(call, approved);
    setDecided([{ id: call.id, ...outcome }, ...decided]);
    announce(outcome.text);
    pending.reload();
  };
  const done = cards.filter(({ id }) => findOutcome(id) !== null).length;
  return (
    <>
      <Heading aside={<NotificationSwitch />}>Approvals</Heading>
      <Failure error={pending.error} retry={pending.reload} />
      <div class="list-head">
        <h2>Waiting{listed && pending.error === null && ` (${cards.length - done}${isCut ? '+' : ''})`}</h2>
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
      {isCut && (
        <Notice>
          More calls wait than are listed here: {listed?.length}, of each caller in turn. Others follow once
          these are decided.
        </Notice>
      )}
      <ul class="cards">
        {cards.map((call) => (
          <ApprovalCard
            key={call.id}
            call={call}
            outcome={findOutcome(call.id)}
            leftAt={left.get(call.id)}
            onDecided={(approved) => settle(call, approved)}
            isListAway={pending.error !== null}
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
