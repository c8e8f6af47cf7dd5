import type { DetailedApprovalView } from '#approvals';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { announce, Badge, Field, type Kind, Time } from '../components.js';
import { disturb, type Readiness, useReadiness } from '../readiness.js';
import { errorText, Refusal, send } from '../server.js';
import { secondStep } from './proposed-change.js';

/** What became of a card. */
export interface Outcome {
  readonly kind: Kind;
  readonly badge: string;
  readonly text: string;
  readonly at?: string;
}

interface DecisionProps {
  readonly call: DetailedApprovalView;
  readonly title: string;
  /** What has to have been in view. */
  readonly content: RefObject<HTMLElement>;
  readonly outcome: Outcome | null;
  readonly decided: (approved: boolean) => void;
  /** Loads what would change now. */
  readonly showAgain: () => void;
}

/**
 * The two decisions, at the end of what they are about. What takes their place is as high as they were, so that no other card
 * moves.
 */
export function Decision({ call, title, content, outcome, decided, showAgain }: DecisionProps) {
  const place = useRef<HTMLDivElement>(null);
  const height = useRef(0);
  const [step, setStep] = useState<'first' | 'second'>('first');
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isOpen = outcome === null && !isFinal(error);
  useLayoutEffect(() => {
    if (isOpen && step === 'first') height.current = place.current?.getBoundingClientRect().height ?? 0;
  });
  const decide = async (decision: 'approve' | 'deny') => {
    if (busy) return;
    setBusy(true);
    setError(null);
    disturb();
    try {
      await send('POST', `api/approvals/${encodeURIComponent(call.id)}`, {
        decision,
        digest: call.digest,
        ...(reason.trim() !== '' && { reason: reason.trim() }),
      });
      decided(decision === 'approve');
    } catch (failed) {
      setError(failed);
    } finally {
      disturb();
      setBusy(false);
    }
  };
  const again = outcome === null && step === 'second' ? secondStep(call, call.preview) : null;
  const shared = { title, content, busy, error };
  let shown: ComponentChildren;
  if (outcome) shown = <Settled outcome={outcome} />;
  else if (isFinal(error))
    shown = (
      <Settled outcome={{ kind: 'bad', badge: 'not decided', text: refusedText(error) }}>
        {error.status === CHANGED && (
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
        refuse={() => void decide('deny')}
      />
    );
  const minHeight = isOpen && step === 'first' ? undefined : `${height.current}px`;
  return (
    <div ref={place} class="decision" style={{ minHeight }}>
      {shown}
    </div>
  );
}

const textOf = (error: unknown) => (error === null ? null : errorText(error));

const CHANGED = 412;
/** Whether the same decision can never be taken. */
const isFinal = (error: unknown): error is Refusal =>
  error instanceof Refusal && [403, 404, 409, CHANGED].includes(error.status);
const refusedText = (error: Refusal) =>
  error.status === CHANGED
    ? 'What this call would change has changed since it was shown: nothing was decided.'
    : error.message;

interface StepProps {
  readonly title: string;
  readonly content: RefObject<HTMLElement>;
  readonly busy: boolean;
  readonly error: unknown;
}

function FirstStep(
  props: StepProps & {
    readonly reason: string;
    readonly setReason: (reason: string) => void;
    readonly approve: () => void;
    readonly refuse: () => void;
  },
) {
  const { title, content, busy, error, reason, setReason, approve, refuse } = props;
  const approves = useRef<HTMLButtonElement>(null);
  const { readiness, isReady } = useReadiness(content, approves);
  const hint = useId();
  const steady = { isReady: () => !busy && isReady(), readiness: busy ? 'moving' : readiness, hint } as const;
  return (
    <>
      <Hint id={hint} readiness={readiness} error={error} />
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
      <SteadyButton {...steady} kind="bad" label={`Refuse ${title}`} press={refuse}>
        Refuse
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
  const { title, content, busy, error, why, does, confirm, back } = props;
  const confirms = useRef<HTMLButtonElement>(null);
  const question = useRef<HTMLParagraphElement>(null);
  const { readiness, isReady } = useReadiness(content, confirms);
  const hint = useId();
  useEffect(() => question.current?.focus({ preventScroll: true }), []);
  const steady = { isReady: () => !busy && isReady(), readiness: busy ? 'moving' : readiness, hint } as const;
  const text = textOf(error);
  return (
    <>
      <p
        ref={question}
        id={hint}
        tabIndex={-1}
        class={text === null ? 'hint asked' : 'hint failed'}
        role={text === null ? undefined : 'alert'}
      >
        {text ?? why}
      </p>
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
  unread: 'Scroll through the whole change first: part of it has not been in view.',
  moving: 'Ready once this has been still for a second.',
  ready: '',
};

function Hint(props: { readonly id: string; readonly readiness: Readiness; readonly error: unknown }) {
  const text = textOf(props.error);
  return text === null ? (
    <p class="hint" id={props.id}>
      {HINTS[props.readiness]}
    </p>
  ) : (
    <p class="hint failed" id={props.id} role="alert">
      {text}
    </p>
  );
}

/** A button that keeps the focus while it takes no press, and takes none of a key that is held. */
function SteadyButton(props: {
  readonly kind: 'good' | 'bad';
  readonly at?: RefObject<HTMLButtonElement>;
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
        else announce(`Not yet. ${HINTS[readiness === 'unread' ? 'unread' : 'moving']}`);
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
