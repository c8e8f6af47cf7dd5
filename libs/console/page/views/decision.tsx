import type { ApprovalView, DetailedApprovalView } from '#approvals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { announce, Badge, Field, type Kind, Time } from '../components.js';
import { disturb, Reading, type Readiness, useReadiness } from '../readiness.js';
import { errorText, Refusal, send, useRequest } from '../server.js';
import { secondStep } from './proposed-change.js';

/** What became of a card. */
export interface Outcome {
  readonly kind: Kind;
  readonly badge: string;
  readonly text: string;
  readonly at?: string;
}

export const NO_LONGER_PENDING: Outcome = {
  kind: 'plain',
  badge: 'over',
  text: 'This call no longer waits: somebody else decided it, or its time is over.',
};

/** The outcome of a decision that was just taken. */
export function describeDecision({ tool, requester }: ApprovalView, approved: boolean): Outcome {
  const badge = approved ? 'approved' : 'denied';
  const text = `${tool} was ${badge} for ${requester.agent}`;
  return { text, badge, kind: approved ? 'good' : 'plain', at: new Date().toISOString() };
}

interface DecisionProps {
  readonly call: DetailedApprovalView;
  readonly title: string;
  /** What has to have been in view. */
  readonly content: RefObject<HTMLElement | null>;
  readonly outcome: Outcome | null;
  readonly onDecided: (approved: boolean) => void;
  /** Loads what would change now. */
  readonly showAgain: () => void;
}

/**
 * The two decisions, at the end of what they are about. What takes their place is as high as they were, so that no other card
 * moves.
 */
export function Decision({ call, title, content, outcome, onDecided: decided, showAgain }: DecisionProps) {
  const place = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  const [reading] = useState(() => new Reading());
  const [step, setStep] = useState<'first' | 'second'>('first');
  const [reason, setReason] = useState('');
  const { busy, error, run } = useRequest();
  const isOpen = outcome === null && !isFinal(error);
  useLayoutEffect(() => {
    if (isOpen && step === 'first') height.current = place.current?.getBoundingClientRect().height ?? 0;
  });
  const decide = async (decision: 'approve' | 'deny') => {
    if (busy) return;
    disturb();
    await run(async () => {
      try {
        await send('POST', `api/approvals/${encodeURIComponent(call.id)}`, {
          decision,
          digest: call.digest,
          ...(reason.trim() !== '' && { reason: reason.trim() }),
        });
        decided(decision === 'approve');
      } finally {
        disturb();
      }
    });
  };
  const again = outcome === null && step === 'second' ? secondStep(call, call.preview) : null;
  const shared = { title, content, reading, busy, error };
  let shown: ComponentChildren;
  if (outcome) shown = <Settled outcome={outcome} />;
  else if (isFinal(error))
    shown = (
      <Settled outcome={{ kind: 'bad', badge: 'not decided', text: describeRefusal(error) }}>
        {error.status === PRECONDITION_FAILED && (
          <button type="button" onClick={showAgain}>
            Show it again
          </button>
        )}
      </Settled>
    );
  else if (call.own) shown = <p class="hint">This is your own request: another person decides it.</p>;
  else if (again)
    shown = (
      <SecondStep
        {...shared}
        why={again.why}
        does={again.does}
        confirm={() => void decide('approve')}
        back={() => setStep('first')}
      />
    );
  else
    shown = (
      <FirstStep
        {...shared}
        reason={reason}
        setReason={setReason}
        approve={() => (secondStep(call, call.preview) ? setStep('second') : void decide('approve'))}
        deny={() => void decide('deny')}
      />
    );
  const minHeight = isOpen && step === 'first' ? undefined : `${height.current}px`;
  return (
    <div ref={place} class="decision" style={{ minHeight }}>
      {shown}
    </div>
  );
}

const toErrorText = (error: unknown) => (error === null ? null : errorText(error));

const PRECONDITION_FAILED = 412;
/** Whether the same decision can never be taken. */
const isFinal = (error: unknown): error is Refusal =>
  error instanceof Refusal && [404, 409, PRECONDITION_FAILED].includes(error.status);
const describeRefusal = (error: Refusal) =>
  error.status === PRECONDITION_FAILED
    ? 'What this call would change has changed since it was shown: nothing was decided.'
    : error.message;

interface StepProps {
  readonly title: string;
  readonly content: RefObject<HTMLElement | null>;
  readonly reading: Reading;
  readonly busy: boolean;
  readonly error: unknown;
}

function FirstStep(
  props: StepProps & {
    readonly reason: string;
    readonly setReason: (reason: string) => void;
    readonly approve: () => void;
    readonly deny: () => void;
  },
) {
  const { title, busy, error, reason, setReason, approve, deny } = props;
  const approves = useRef<HTMLButtonElement>(null);
  const { readiness, isReady } = useReadiness(props, approves);
  const hint = useId();
  const steady = { isReady: () => !busy && isReady(), readiness: busy ? 'moving' : readiness, hint } as const;
  return (
    <>
      <Hint id={hint} texts={HINTS} readiness={readiness} error={error} />
      <Field label="Reason, sent to the agent">
        <input
          type="text"
          maxLength={500}
          autoComplete="off"
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </Field>
      <SteadyButton {...steady} kind="good" at={approves} label={`Approve ${title}`} press={approve}>
        Approve
      </SteadyButton>
      <SteadyButton {...steady} kind="bad" label={`Deny ${title}`} press={deny}>
        Deny
      </SteadyButton>
    </>
  );
}

/** Its button is where the reason was: never where the button of the first step was. */
function SecondStep(
  props: StepProps & {
    readonly why: string;
    readonly does: string;
    readonly confirm: () => void;
    readonly back: () => void;
  },
) {
  const { title, busy, error, why, does, confirm, back } = props;
  const confirms = useRef<HTMLButtonElement>(null);
  const question = useRef<HTMLParagraphElement>(null);
  const { readiness, isReady } = useReadiness(props, confirms);
  const hint = useId();
  useEffect(() => question.current?.focus({ preventScroll: true }), []);
  const steady = { isReady: () => !busy && isReady(), readiness: busy ? 'moving' : readiness, hint } as const;
  return (
    <>
      <Hint
        at={question}
        id={hint}
        kind="asked"
        texts={{ ...HINTS, moving: why, ready: why }}
        readiness={readiness}
        error={error}
      />
      <div class="confirm">
        <SteadyButton {...steady} kind="bad" at={confirms} press={confirm}>
          {does}
        </SteadyButton>
      </div>
      <button type="button" class="back" aria-label={`Back, do not ${title}`} onClick={back}>
        Back
      </button>
    </>
  );
}

const HINTS: Readonly<Record<Readiness, string>> = {
  unread: 'Scroll through the whole change first: part of it was not in view, or only for a moment.',
  outside: 'Scroll until the buttons are in view.',
  moving: 'Ready once this has been still for a second.',
  ready: '',
};

/** As high as the longest of its texts: a change of the text moves no button. */
function Hint(props: {
  readonly id: string;
  readonly at?: RefObject<HTMLParagraphElement | null>;
  readonly kind?: 'asked';
  readonly texts: Readonly<Record<Readiness, string>>;
  readonly readiness: Readiness;
  readonly error: unknown;
}) {
  const { id, at, kind = '', texts, readiness, error } = props;
  const failed = toErrorText(error);
  const shown = failed ?? texts[readiness];
  return (
    <p
      ref={at ?? null}
      id={id}
      tabIndex={-1}
      class={failed === null ? `hint ${kind}` : 'hint failed'}
      role={failed === null ? undefined : 'alert'}
    >
      {[...new Set(Object.values(texts))].map((text) => (
        <span key={text} class={text === shown ? undefined : 'absent'}>
          {text}
        </span>
      ))}
      {failed !== null && <span>{failed}</span>}
    </p>
  );
}

/** A button that keeps the focus while it takes no press, and takes none of a key that is held. */
function SteadyButton(props: {
  readonly kind: 'good' | 'bad';
  readonly at?: RefObject<HTMLButtonElement | null>;
  readonly label?: string;
  readonly hint: string;
  readonly readiness: Readiness;
  readonly isReady: () => boolean;
  readonly press: () => void;
  readonly children: ComponentChildren;
}) {
  const { kind, at, label, hint, readiness, isReady, press, children } = props;
  return (
    <button
      type="button"
      ref={at ?? null}
      class={kind}
      aria-disabled={readiness !== 'ready'}
      aria-label={label}
      aria-describedby={hint}
      onKeyDown={(event) => {
        if (event.repeat && (event.key === 'Enter' || event.key === ' ')) event.preventDefault();
      }}
      onClick={() => {
        if (isReady()) press();
        else announce(`Not yet. ${HINTS[readiness === 'ready' ? 'moving' : readiness]}`);
      }}
    >
      {children}
    </button>
  );
}

/** What stands where the buttons were. It takes the focus of the one that was pressed. */
function Settled({
  outcome,
  children,
}: {
  readonly outcome: Outcome;
  readonly children?: ComponentChildren;
}) {
  const text = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    // The button that had the focus is gone, and the focus with it.
    if (document.activeElement === document.body) text.current?.focus({ preventScroll: true });
  }, []);
  return (
    <p ref={text} class="settled" tabIndex={-1}>
      <Badge kind={outcome.kind}>{outcome.badge}</Badge>
      <span>{outcome.text}</span>
      {outcome.at !== undefined && <Time iso={outcome.at} />}
      {children}
    </p>
  );
}
