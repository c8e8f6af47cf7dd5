import { setTimeout as pause } from 'node:timers/promises';

/** Milliseconds for all shutdown steps except the running calls. */
export const CLOSING_TIMEOUT = 10_000;

/** One resource to close, with its description for the operator's log. */
export type ClosingStep = readonly [name: string, close: () => Promise<unknown> | undefined];

/**
 * Closes the resources in order. A step that fails does not stop later steps. A resource that is not closed within
 * `timeout` milliseconds is abandoned.
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
