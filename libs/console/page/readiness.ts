import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Milliseconds that buttons stay in view at one place before they take a press. */
const MIN_STILL_TIME = 1_000;
/** Milliseconds that a part stays in view before it counts: what only flies by was not seen. */
const MIN_VISIBLE_TIME = 300;
const LOOK_INTERVAL = 100;

type Span = readonly [from: number, to: number];

/** Adds a part that is in view to those that were before. Parts that touch become one. */
export function withSeen(seen: readonly Span[], [from, to]: Span): readonly Span[] {
  if (to <= from) return seen;
  const apart = seen.filter((one) => one[1] < from || one[0] > to);
  const touched = seen.filter((one) => !apart.includes(one));
  const joined: Span = [
    Math.min(from, ...touched.map((one) => one[0])),
    Math.max(to, ...touched.map((one) => one[1])),
  ];
  return [...apart, joined];
}

/** Whether all of a height was in view. Positions have fractions of a pixel. */
export function isWhole(seen: readonly Span[], height: number): boolean {
  return seen.some(([from, to]) => from <= 1 && to >= height - 1);
}

/** What of a content has been in view. */
export class Reading {
  private seen: readonly Span[] = [];
  private looks: readonly { readonly at: number; readonly part: Span }[] = [];
  private height = 0;

  /** @param part what of the height is in view now */
  look(part: Span, height: number, now: number): void {
    // At another height other parts of it are in view.
    if (Math.abs(height - this.height) > 1) [this.seen, this.looks] = [[], []];
    this.height = height;
    const looks = [...this.looks, { at: now, part }];
    const first = looks.findLastIndex(({ at }) => now - at >= MIN_VISIBLE_TIME);
    this.looks = looks.slice(Math.max(first, 0));
    if (first < 0) return;
    const [froms, tos] = [0, 1].map((end) => this.looks.map((one) => one.part[end] ?? 0)) as [
      number[],
      number[],
    ];
    this.seen = withSeen(this.seen, [Math.max(...froms), Math.min(...tos)]);
  }
  isDone(): boolean {
    return isWhole(this.seen, this.height);
  }
}

/**
 * `unread`: part of what is decided on has not been in view. `outside`: the buttons are not. `moving`: they came or moved within
 * the last second.
 */
export type Readiness = 'unread' | 'outside' | 'moving' | 'ready';

let disturbedAt = 0;
/** Makes all buttons wait that look for their readiness, as if they had moved. */
export function disturb(): void {
  disturbedAt = performance.now();
}

/** The part of the window in which things can be seen; null: none. */
function visiblePart(of: DOMRect): Span | null {
  if (document.hidden || document.querySelector('dialog[open]')) return null;
  const { offsetTop = 0, height = innerHeight } = visualViewport ?? {};
  const head = document.querySelector('.top')?.getBoundingClientRect();
  const isUnder = head !== undefined && head.right > of.left && head.left < of.right;
  return [Math.max(offsetTop, isUnder ? head.bottom : 0), offsetTop + height];
}

/** Whether as much of a box is in view as can be. Positions have fractions of a pixel. */
export function isInView([from, to]: Span, part: Span): boolean {
  return Math.min(to, part[1]) - Math.max(from, part[0]) >= Math.min(to - from, part[1] - part[0]) - 1;
}

class Watch {
  private place: string | null = null;
  private since = 0;
  constructor(private readonly reading: Reading) {}

  look(content: HTMLElement, buttons: HTMLElement): Readiness {
    const [shown, box] = [content.getBoundingClientRect(), buttons.getBoundingClientRect()];
    const part = visiblePart(shown);
    const now = performance.now();
    const { top, height } = shown;
    const read: Span = part ? [Math.max(0, part[0] - top), Math.min(height, part[1] - top)] : [0, 0];
    this.reading.look(read, height, now);
    const place = part && isInView([box.top, box.bottom], part) ? describePlace(box) : null;
    if (place === null || place !== this.place) this.since = now;
    this.place = place;
    // What is whole in view needs no scrolling, only another moment.
    if (!this.reading.isDone()) return isWhole([read], height) ? 'moving' : 'unread';
    if (part && place === null) return 'outside';
    return place !== null && now - Math.max(this.since, disturbedAt) >= MIN_STILL_TIME ? 'ready' : 'moving';
  }
}

/** Where a box is on the screen, also where fingers have enlarged a part of the page. */
function describePlace({ left, top, width, height }: DOMRect): string {
  const { offsetLeft = 0, offsetTop = 0, scale = 1 } = visualViewport ?? {};
  return [left - offsetLeft, top - offsetTop, width, height].map((one) => Math.round(one * scale)).join();
}

/**
 * Whether buttons may be pressed: all of the content has been in view, and the buttons have been at one place of the window for
 * a second.
 *
 * @param reading of the content, by whichever buttons it was before
 */
export function useReadiness(
  { content, reading }: { readonly content: RefObject<HTMLElement | null>; readonly reading: Reading },
  buttons: RefObject<HTMLElement | null>,
) {
  const watch = useRef<Watch | null>(null);
  const [readiness, setReadiness] = useState<Readiness>('moving');
  const look = (): Readiness => {
    if (!content.current || !buttons.current) return 'moving';
    const now = (watch.current ??= new Watch(reading)).look(content.current, buttons.current);
    setReadiness(now);
    return now;
  };
  useEffect(() => {
    look();
    const timer = setInterval(look, LOOK_INTERVAL);
    const looks = () => void look();
    const handleReturn = () => {
      disturb();
      look();
    };
    addEventListener('scroll', looks, { passive: true, capture: true });
    for (const event of ['resize', 'visibilitychange']) addEventListener(event, looks);
    addEventListener('focus', handleReturn);
    return () => {
      clearInterval(timer);
      removeEventListener('scroll', looks, { capture: true });
      for (const event of ['resize', 'visibilitychange']) removeEventListener(event, looks);
      removeEventListener('focus', handleReturn);
    };
  }, []);
  return {
    readiness,
    /** Looks once more: the layout may have changed since the last look. */
    isReady: () => readiness === 'ready' && look() === 'ready',
  };
}
