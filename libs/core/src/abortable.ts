/** Why a transport, a worker or a watcher ends what still runs when the service ends. */
export const SERVER_SHUTDOWN = 'server_shutdown';
/** Another process runs the same, and answers for it. */
export const RUN_REPLACED = 'run_replaced';
/** Why a transport ends the calls of an agent that an operator suspends. */
export const AGENT_SUSPENDED = 'agent_suspended';
/** Why a file breaks off whose reader a changed configuration would admit otherwise. */
export const CONFIGURATION_CHANGED = 'configuration_changed';

/**
 * Work that may have to end before it is done: a request, a call, an operation at a store. A Node `AbortSignal` and each of its
 * listeners cost as much as some gates, and most calls end without one: what only asks or listens uses `isAborted` and
 * `whenAborted`, which make no signal (docs/contributing/decisions/0032-signals-when-read.md).
 */
export interface Abortable {
  /** Aborts when the work has to end. Its reason says why. */
  readonly signal: AbortSignal;
  /** Whether `signal` has aborted, for work that makes its signal when it is first read. Default: ask the signal. */
  readonly aborted?: boolean;
  /**
   * Calls the listener once when the work has to end. Default: an event of the signal.
   * @returns removes the listener
   */
  readonly onAbort?: (listener: () => void) => () => void;
}

/** Whether the work has to end. A signal that nobody listens to is not made for the question. */
export function isAborted(work: Abortable): boolean {
  return work.aborted ?? work.signal.aborted;
}

/** Calls the listener once when the work has to end. @returns removes the listener */
export function whenAborted(work: Abortable, listener: () => void): () => void {
  if (work.onAbort) return work.onAbort(listener);
  const { signal } = work;
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/** Makes its signal when it is first read. */
export class LazyAbort<Reason = unknown> implements Abortable {
  private controller: AbortController | null = null;
  private because: { readonly reason: Reason } | null = null;
  /** An array: a set whose members come and go keeps its former tables alive. */
  private listeners: (() => void)[] = [];

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.because) this.controller.abort(this.because.reason);
    }
    return this.controller.signal;
  }

  get aborted(): boolean {
    return this.because !== null;
  }

  /** The reason of the abort; undefined: it was not aborted. */
  get reason(): Reason | undefined {
    return this.because?.reason;
  }

  /** The first reason stays. */
  abort(reason: Reason): void {
    if (this.because) return;
    this.because = { reason };
    this.controller?.abort(reason);
    const { listeners } = this;
    this.listeners = [];
    for (const listener of listeners) listener();
  }

  onAbort(listener: () => void): () => void {
    this.listeners.push(listener);
    return () => {
      const at = this.listeners.indexOf(listener);
      if (at !== -1) this.listeners.splice(at, 1);
    };
  }
}
