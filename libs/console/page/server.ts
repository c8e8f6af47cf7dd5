import { useEffect, useState } from 'preact/hooks';
import { CONSOLE } from './address.js';

/** Nobody is signed in, or no longer. */
export class SignedOut extends Error {
  override readonly name = 'SignedOut';
}

/** The service refused; its message may be shown. */
export class Refusal extends Error {
  override readonly name: string = 'Refusal';
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** The service is busy: the same request may succeed in a few seconds. */
export class Busy extends Refusal {
  constructor(message: string) {
    super(503, `${message}: try again in a few seconds`);
  }
}

const HEADER = { 'X-Parley-Console': '1' };
let handleSignOut: () => void = () => undefined;

/** Registers what happens when the session is over. */
export function onSignedOut(listener: () => void): void {
  handleSignOut = listener;
}

/** Reads something. @throws SignedOut, Refusal */
export function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return exchange<T>('GET', path, undefined, signal);
}

/** Changes something, or asks with a body. @throws SignedOut, Refusal */
export function send<T>(method: 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
  return exchange<T>(method, path, body);
}

const NO_ANSWER = 'the service does not answer';

async function exchange<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await fetch(`${CONSOLE}/${path}`, {
    method,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    headers: { ...HEADER, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refusal(0, NO_ANSWER);
  });
  const answer = (await response.json().catch(() => null)) as { error?: string } | null;
  if (response.ok && answer === null) throw new Refusal(0, NO_ANSWER);
  if (response.ok) return answer as T;
  if (response.status === 401 && !path.startsWith('session')) {
    handleSignOut();
    throw new SignedOut(answer?.error ?? 'signed out');
  }
  const message =
    response.status === 500
      ? 'the service failed: its log says why'
      : (answer?.error ?? `the service answered ${response.status}`);
  throw response.status === 503 ? new Busy(message) : new Refusal(response.status, message);
}

/** @returns the sentence to show; null when there is nothing to show, because the sign-in is shown instead */
export function errorText(error: unknown): string | null {
  if (error instanceof SignedOut) return null;
  return error instanceof Refusal ? error.message : 'something of this page failed';
}

/** Milliseconds that an answer may take which is loaded again. A connection that was lost without notice would never give one. */
const ANSWERED_WITHIN = 30_000;

export interface Answer<T> {
  /** Absent until the first answer arrives. The last one stays while a new one is loaded. */
  readonly value: T | undefined;
  /** When it arrived: milliseconds since 1970. */
  readonly answeredAt: number | undefined;
  readonly error: unknown;
  readonly reload: () => void;
}

/**
 * Loads a route, again when the path changes. While an answer is awaited it is not loaded again: a slow service would receive
 * ever more requests, and an older answer could replace a newer one.
 * @param path null: nothing is loaded
 * @param every milliseconds between two loads
 * @param inBackground whether it is loaded again also while the page is in the background. Default false
 */
export function useAnswer<T>(path: string | null, every?: number, inBackground = false): Answer<T> {
  const [state, setState] = useState<{ value?: T; answeredAt?: number; error: unknown; path: string | null }>(
    {
      error: null,
      path: null,
    },
  );
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const leaving = new AbortController();
    let awaited = false;
    const load = () => {
      if (awaited) return;
      awaited = true;
      const within =
        every === undefined
          ? leaving.signal
          : AbortSignal.any([leaving.signal, AbortSignal.timeout(ANSWERED_WITHIN)]);
      const settle = (next: Partial<Answer<T>>) => {
        awaited = false;
        if (!leaving.signal.aborted) setState((before) => ({ ...before, error: null, ...next, path }));
      };
      ask<T>(path, within).then(
        (value) => settle({ value, answeredAt: Date.now() }),
        (error: unknown) => settle({ error: within.aborted ? new Refusal(0, NO_ANSWER) : error }),
      );
    };
    load();
    const timer =
      every === undefined
        ? undefined
        : setInterval(() => (inBackground || !document.hidden) && load(), every);
    return () => {
      leaving.abort();
      clearInterval(timer);
    };
  }, [path, every, inBackground, round]);
  const { value, answeredAt, error } = state;
  return { value, answeredAt, error, reload: () => setRound((last) => last + 1) };
}

/** A request that a button begins: whether it is awaited, and why the last one failed. */
export function useRequest() {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(null);
    await work().catch((failed: unknown) => setError(failed));
    setBusy(false);
  };
  return { busy, error, run };
}
