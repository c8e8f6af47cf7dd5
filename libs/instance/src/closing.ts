import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds for everything that an end does besides letting running calls finish. */
export const CLOSING_TIMEOUT = 10_000;

/** One thing to close, in words for the operator's log. */
export type ClosingStep = readonly [name: string, close: () => Promise<unknown> | undefined];

/**
 * Closes one after the other. A step that fails does not keep the later ones from their turn, and whatever has not closed
 * within `timeout` milliseconds is left behind: what it waits for may never come back.
 */
export async function closeWithin(
  timeout: number,
  steps: readonly ClosingStep[],
  log: { warn(line: string): void },
): Promise<void> {
  const over = new AbortController();
  const late = pause(timeout, true, { signal: over.signal }).catch(() => true);
  try {
    for (const [name, close] of steps) {
      const closed = (async () => close())().then(
        () => false,
        (error: unknown) => {
          const kind = error instanceof Error ? error.name : 'unknown fault';
          log.warn(`${name} could not be closed: ${kind}`);
          return false;
        },
      );
      if (await Promise.race([closed, late])) log.warn(`${name} did not close in time and is left behind`);
    }
  } finally {
    over.abort();
  }
}
