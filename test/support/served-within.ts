import { readFileSync } from 'node:fs';

/** How long others may wait while somebody floods a service, in milliseconds. */
export const SERVED_WITHIN = 2_000;

/** One call and how long it took. What the service or this process waited for a processor does not count: others had it. */
export interface Served<T> {
  readonly answer: T;
  readonly milliseconds: number;
}

/** Calls a service one after the other, at least once, for as long as something goes on. */
export async function servedWhile<T>(
  { pid }: { readonly pid: number },
  going: () => boolean,
  call: () => Promise<T>,
): Promise<Served<T>[]> {
  const queued = () => queuedMilliseconds(String(pid)) + queuedMilliseconds('thread-self');
  const served: Served<T>[] = [];
  do {
    const begun = performance.now() - queued();
    const answer = await call();
    served.push({ answer, milliseconds: performance.now() - queued() - begun });
    await new Promise((resolve) => setTimeout(resolve, 50));
  } while (going());
  return served;
}

/** Milliseconds that a thread has been ready to run while others ran (sched-stats of the Linux kernel). */
function queuedMilliseconds(thread: string): number {
  const [, nanoseconds] = readFileSync(`/proc/${thread}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

/** The value that so many of a hundred do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const inOrder = values.toSorted((a, b) => a - b);
  return inOrder[Math.ceil((inOrder.length * percent) / 100) - 1] ?? Infinity;
}
