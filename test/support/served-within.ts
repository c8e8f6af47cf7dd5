/** How long others may wait while somebody floods a service, in milliseconds. */
export const SERVED_WITHIN = 2_000;

/** One call and how long it took. */
export interface Served<T> {
  readonly answer: T;
  readonly milliseconds: number;
}

/** Calls one after the other, at least once, for as long as something goes on. */
export async function servedWhile<T>(going: () => boolean, call: () => Promise<T>): Promise<Served<T>[]> {
  const served: Served<T>[] = [];
  do {
    const begun = performance.now();
    const answer = await call();
    served.push({ answer, milliseconds: performance.now() - begun });
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (going());
  return served;
}

/** The value that so many of a hundred do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const inOrder = values.toSorted((a, b) => a - b);
  return inOrder[Math.ceil((inOrder.length * percent) / 100) - 1] ?? Infinity;
}
