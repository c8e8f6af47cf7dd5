/**
 * The order that members of a filter are evaluated in where it is not the written one. Drawn from a seed: the same
 * operations in the same order give the same draws.
 */
export class EvaluationOrder {
  private state: number;

  constructor(readonly seed: number) {
    this.state = seed >>> 0;
  }

  /** The same members in a new random order. */
  shuffle<T>(members: readonly T[]): T[] {
    const drawn = [...members];
    for (let last = drawn.length - 1; last > 0; last--) {
      const place = Math.floor(this.next() * (last + 1));
      [drawn[last], drawn[place]] = [drawn[place] as T, drawn[last] as T];
    }
    return drawn;
  }

  /** Three times out of four. */
  chance(): boolean {
    return this.next() < 0.75;
  }

  /** Mulberry32. */
  private next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }
}

/**
 * Whether every member holds. With an order given none is left out, because in some other order it would be the first: what can
 * fail fails, whatever a member in front of it said.
 */
export function allHold<T>(
  members: readonly T[],
  holds: (member: T) => boolean,
  order: EvaluationOrder | undefined,
): boolean {
  if (!order) return members.every(holds);
  return order.shuffle(members).map(holds).every(Boolean);
}

/** Whether some member holds; with an order given none is left out. */
export const someHolds: typeof allHold = (members, holds, order) =>
  !allHold(members, (member) => !holds(member), order);
