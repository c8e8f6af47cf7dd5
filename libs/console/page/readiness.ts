import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Milliseconds that buttons stay in view at one place before they take a press. */
const STILL = 1_000;
const LOOK = 100;

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

/** `unread`: part of what is decided on has not been in view. `moving`: the buttons came or moved within the last second. */
export type Readiness = 'unread' | 'moving' | 'ready';

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

class Watch {
  private seen: readonly Span[] = [];
  private height = 0;
  private place: string | null = null;
  private since = 0;

  look(content: HTMLElement, buttons: HTMLElement): Readiness {
    const [shown, box] = [content.getBoundingClientRect(), buttons.getBoundingClientRect()];
    const part = visiblePart(shown);
    this.read(shown, part);
    const isInView = part !== null && box.top >= part[0] && box.bottom <= part[1];
    const place = isInView ? [box.left, box.top, box.width, box.height].map(Math.round).join() : null;
    const now = performance.now();
    if (place === null || place !== this.place) this.since = now;
    this.place = place;
    if (!isWhole(this.seen, this.height)) return 'unread';
    return place !== null && now - Math.max(this.since, disturbedAt) >= STILL ? 'ready' : 'moving';
  }

  private read({ top, height }: DOMRect, part: Span | null): void {
    // Of another height it is laid out anew: other parts of it are in view.
    if (Math.abs(height - this.height) > 1) this.seen = [];
    this.height = height;
    if (part) this.seen = withSeen(this.seen, [Math.max(0, part[0] - top), Math.min(height, part[1] - top)]);
  }
}

/**
 * Whether buttons may be pressed: all of the content has been in view, and the buttons have been at one place of the window for
 * a second.
 */
export function useReadiness(content: RefObject<HTMLElement>, buttons: RefObject<HTMLElement>) {
  const watch = useRef<Watch | null>(null);
  const [readiness, setReadiness] = useState<Readiness>('moving');
  const look = (): Readiness => {
    if (!content.current || !buttons.current) return 'moving';
    const now = (watch.current ??= new Watch()).look(content.current, buttons.current);
    setReadiness(now);
    return now;
  };
  useEffect(() => {
    look();
    const timer = setInterval(look, LOOK);
    const looks = () => void look();
    const returned = () => {
      disturb();
      look();
    };
    addEventListener('scroll', looks, { passive: true, capture: true });
    for (const event of ['resize', 'visibilitychange']) addEventListener(event, looks);
    addEventListener('focus', returned);
    return () => {
      clearInterval(timer);
      removeEventListener('scroll', looks, { capture: true });
      for (const event of ['resize', 'visibilitychange']) removeEventListener(event, looks);
      removeEventListener('focus', returned);
    };
  }, []);
  return {
    readiness,
    /** Looks once more: the layout may have changed since the last look. */
    isReady: () => readiness === 'ready' && look() === 'ready',
  };
}
