import { notice } from './dom.js';
import { Refusal, SignedOut } from './server.js';

type Listener = () => void;
const listeners = new Set<Listener>();

/** Hears when the service knows us no longer. */
export function onSignedOut(listener: Listener): void {
  listeners.add(listener);
}

/** @returns what to show of a fault; null when there is nothing to show because the view is left */
export function shownError(error: unknown, signal?: AbortSignal): HTMLElement | null {
  if (signal?.aborted) return null;
  if (error instanceof SignedOut) {
    for (const listener of listeners) listener();
    return null;
  }
  return notice(error instanceof Refusal ? error.message : 'something of this page failed', 'bad');
}
