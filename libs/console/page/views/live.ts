import { announce, el, field, fill, heading } from '../dom.js';
import { type ConsoleRecord, isRefused, mentions, recordItem } from '../record-list.js';
import { ask } from '../server.js';
import { shownError } from '../shown-error.js';
import type { View } from '../view.js';

/** Records that are kept, and that are shown at once. */
const KEPT = 500;
const SHOWN = 150;

interface Batch {
  readonly records: readonly ConsoleRecord[];
  readonly missed: number;
}

/** Calls as they come, on every replica. */
export function liveView(): View {
  const list = el('ol', { class: 'records', 'aria-label': 'Calls, newest first' });
  const state = el('p', { class: 'state' });
  const counted = el('p', { class: 'quiet counted' });
  const search = el('input', { type: 'search', id: 'live-search', autocomplete: 'off', input: () => draw() });
  const verdict = el(
    'select',
    { change: () => draw() },
    el('option', { value: '' }, 'all'),
    el('option', { value: 'refused' }, 'refused'),
    el('option', { value: 'ok' }, 'ok'),
  );
  const pause = el('button', { type: 'button', 'aria-pressed': 'false', click: () => toggle() }, 'Pause');
  let records: ConsoleRecord[] = [];
  let held: ConsoleRecord[] = [];
  let missed = 0;
  let isPaused = false;

  const matches = (record: ConsoleRecord) =>
    (verdict.value === '' || isRefused(record) === (verdict.value === 'refused')) &&
    mentions(record, search.value.trim());

  function draw(): void {
    const found = records.filter(matches);
    fill(list, ...found.slice(0, SHOWN).map(recordItem));
    count(found.length);
  }

  function count(found = records.filter(matches).length): void {
    const refused = records.filter(isRefused).length;
    const parts = [`${records.length} seen`, `${refused} refused`];
    if (found !== records.length) parts.push(`${found} match`);
    if (missed > 0) parts.push(`${missed} too many to show`);
    if (held.length > 0) parts.push(`${held.length} held back`);
    fill(
      counted,
      records.length === 0 && held.length === 0 ? 'No call since this page was opened.' : parts.join(' · '),
    );
  }

  /** New ones go on top of what stands there, so that an open record stays open. */
  function add(fresh: readonly ConsoleRecord[]): void {
    const newest = fresh.toReversed();
    records = [...newest, ...records].slice(0, KEPT);
    list.prepend(...newest.filter(matches).map(recordItem));
    while (list.children.length > SHOWN) list.lastElementChild?.remove();
    count();
  }

  function hear({ records: fresh, missed: more }: Batch): void {
    missed += more;
    if (!isPaused) return add(fresh);
    held = [...held, ...fresh].slice(-KEPT);
    count();
  }

  function toggle(): void {
    isPaused = !isPaused;
    pause.setAttribute('aria-pressed', String(isPaused));
    fill(pause, isPaused ? 'Continue' : 'Pause');
    announce(isPaused ? 'paused' : 'continued');
    const waiting = held;
    held = [];
    if (!isPaused) add(waiting);
  }

  return {
    name: 'live',
    title: 'Live calls',
    keys: { p: { does: 'pause or continue', run: toggle } },
    show(root, signal) {
      fill(
        root,
        heading('Live calls', state),
        el(
          'form',
          { class: 'bar', role: 'search', submit: (event) => event.preventDefault() },
          field('Search', search),
          field('Verdict', verdict),
          pause,
        ),
        counted,
        list,
      );
      draw();
      watch(signal, state, hear);
    },
  };
}

/** Follows the stream and comes back to it by itself; while it is away that is said. */
function watch(signal: AbortSignal, state: HTMLElement, hear: (batch: Batch) => void): void {
  const say = (text: string, kind: string) => {
    fill(state, el('span', { class: `dot ${kind}`, 'aria-hidden': 'true' }), text);
  };
  say('connecting', 'plain');
  const source = new EventSource('/console/api/live');
  signal.addEventListener('abort', () => source.close());
  source.addEventListener('watching', () => say('watching', 'good'));
  source.addEventListener('records', (event) => {
    hear(JSON.parse((event as MessageEvent<string>).data) as Batch);
  });
  source.addEventListener('error', () => {
    say('not connected', 'bad');
    if (source.readyState !== EventSource.CLOSED) return;
    // A browser does not come back after a refusal: who we are is asked first, and then again for the stream.
    const again = setTimeout(() => {
      ask('api/status', signal).then(
        () => !signal.aborted && watch(signal, state, hear),
        (error: unknown) => shownError(error, signal) && !signal.aborted && watch(signal, state, hear),
      );
    }, 3_000);
    signal.addEventListener('abort', () => clearTimeout(again));
  });
}
