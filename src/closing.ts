import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds for everything that an end does besides letting running calls finish. */
export const LAST_WORDS = 10_000;

/** One thing to close, in words for the operator's log. */
export type ClosingStep = readonly [name: string, close: () => Promise<unknown> | undefined];

/**
 * Closes one after the other. A step that fails does not keep the later ones from their turn, and whatever has not closed
 * within `patience` milliseconds is left behind: what it waits for may never come back.
 */
export async function closeWithin(
  patience: number,
  steps: readonly ClosingStep[],
  log: { warn(line: string): void },
): Promise<void> {
  const over = new AbortController();
  const late = pause(patience, true, { signal: over.signal }).catch(() => true);
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

/** Ends the process once what runs has ended; with a second signal at once. */
export function closeOnSignals(close: () => Promise<void>): void {
  let asked = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (asked) process.exit(1);
      asked = true;
      close().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}
