import { useEffect, useState } from 'preact/hooks';
import type { StateAnswer } from '../src/controllers/status.controller.js';
import { announce } from './components.js';
import { formatCount, timeSince } from './formats.js';
import { type Answer, errorText, useAnswer } from './server.js';
import { cleanText } from './shown-text.js';
import { findTroubles, type Trouble } from './troubles.js';

const REFRESH_INTERVAL = 5_000;
/** Milliseconds after which an answer is too old to say that all is well. */
const STALE = 20_000;

const DEGRADED = 'Degraded: this console shows what one replica knows itself, and decides nothing';

/** How all replicas are, asked again and again. */
export const useServiceState = () => useAnswer<StateAnswer>('api/state', REFRESH_INTERVAL);

/** What is wrong now, the worst first. */
export function troublesNow(state: Answer<StateAnswer>): readonly Trouble[] {
  const silent = state.error ? errorText(state.error) : null;
  const first: readonly Trouble[] =
    silent === null ? [] : [{ kind: 'bad', text: `The state cannot be read: ${silent}`, href: '#/health' }];
  const degraded: readonly Trouble[] = state.value?.degraded
    ? [{ kind: 'bad', text: DEGRADED, href: '#/audit' }]
    : [];
  const troubles = [...first, ...(state.value ? findTroubles(state.value) : []), ...degraded];
  return troubles.toSorted((one, other) => Number(one.kind !== 'bad') - Number(other.kind !== 'bad'));
}

/** What is wrong with the service, above every page, and how old that is. It keeps its height: nothing below it moves. */
export function StateStrip({ state }: { readonly state: Answer<StateAnswer> }) {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((last) => last + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  const troubles = troublesNow(state);
  const [worst, ...others] = troubles;
  const said = troubles.map(({ text }) => text).join('; ');
  useEffect(() => {
    if (said !== '') announce(said);
  }, [said]);
  const { value, answeredAt } = state;
  const isStale = answeredAt !== undefined && Date.now() - answeredAt > STALE;
  const kind = troubles.some((one) => one.kind === 'bad')
    ? 'bad'
    : troubles.length > 0 || isStale
      ? 'busy'
      : 'good';
  return (
    <section
      class={`strip ${value || troubles.length > 0 ? kind : 'plain'}`}
      aria-label="State of the service"
    >
      <p class="worst">
        {worst ? (
          <Said trouble={worst} />
        ) : value ? (
          describeHealth(value)
        ) : (
          'Reading the state of the service…'
        )}
      </p>
      {others.length > 0 && (
        <details key={location.hash}>
          <summary>{others.length} more</summary>
          <ul>
            {others.map((trouble) => (
              <li key={trouble.text}>
                <Said trouble={trouble} />
              </li>
            ))}
          </ul>
        </details>
      )}
      {answeredAt !== undefined && <p class="age">updated {timeSince(new Date(answeredAt).toISOString())}</p>}
    </section>
  );
}

function Said({ trouble: { kind, text, href } }: { readonly trouble: Trouble }) {
  const shown = cleanText(text, 300);
  return (
    <a class={kind} href={href} title={shown}>
      {shown}
    </a>
  );
}

function describeHealth({ scope, replicas }: StateAnswer): string {
  const version = replicas[0]?.policy.version ?? '';
  const of = scope === 'replicas' ? ` · ${formatCount(replicas.length, 'replica')}` : '';
  return `All well${of} · policy ${version}`;
}
