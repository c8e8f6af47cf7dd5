import type { ApprovalView, DetailedApprovalView } from '#approvals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Badge, Failure, Time } from '../components.js';
import { timeUntil } from '../formats.js';
import { ask } from '../server.js';
import { Decision, type Outcome } from './decision.js';
import { Change, findClass, describeObject, PreviewAsJson } from './proposed-change.js';

const LEFT = 'Nobody waits for the answer any more: an approval counts only if the same call is made again';

/** Milliseconds after which what could not be shown is asked for again. */
const ASKED_AGAIN_AFTER = 15_000;

interface CardProps {
  readonly call: ApprovalView;
  readonly outcome: Outcome | null;
  /** When its caller stopped waiting. */
  readonly leftAt: string | undefined;
  readonly onDecided: (approved: boolean) => void;
  /** Whether the whole list cannot be loaded: then no card says the same of itself. */
  readonly isListAway?: boolean;
}

/** A call that waits, what it would change, and the two decisions at its end. */
export function ApprovalCard(props: CardProps) {
  const { call, outcome, leftAt, onDecided: decided, isListAway = false } = props;
  const { id, tool, permission, requester } = call;
  const content = useRef<HTMLDivElement>(null);
  const [loaded, setLoaded] = useState<{ readonly detailed: DetailedApprovalView; readonly round: number }>();
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const [attempt, setAttempt] = useState(0);
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
  }, [id, round, attempt]);
  const isUnseen = error !== null || (loaded !== undefined && 'preview_error' in loaded.detailed.preview);
  useEffect(() => {
    if (!isUnseen || outcome !== null) return undefined;
    const timer = setInterval(() => setAttempt((last) => last + 1), ASKED_AGAIN_AFTER);
    return () => clearInterval(timer);
  }, [isUnseen, outcome === null]);
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
          <span class={outcome ? 'ends absent' : 'ends'}>
            {isListAway ? 'may have ended' : `ends in ${timeUntil(call.expires_at)}`}
          </span>
        </div>
        <p class="asker">
          <strong>{requester.agent}</strong>{' '}
          <span class="quiet">{requester.key_name ?? requester.principal}</span>{' '}
          <span class="quiet">
            requested at <Time iso={call.requested_at} />
          </span>
        </p>
        {!isListAway && <Failure error={error} retry={() => setRound(round + 1)} />}
        {preview ? <Change tool={tool} preview={preview} /> : error === null && <p class="quiet">Loading…</p>}
      </div>
      {preview && <PreviewAsJson tool={tool} preview={preview} />}
      {loaded && (
        <Decision
          // Another change is read from its beginning; the same one keeps what was read and written.
          key={`${loaded.round} ${loaded.detailed.digest}`}
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
