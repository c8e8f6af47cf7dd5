/** Nobody is signed in, or no longer. */
export class SignedOut extends Error {
  override readonly name = 'SignedOut';
}

/** The service said no; its words may be shown. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const HEADER = { 'X-Parley-Console': '1' };

/** Reads something. @throws SignedOut, Refusal */
export function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  return exchange<T>('GET', path, undefined, signal);
}

/** Changes something, or asks with a body. @throws SignedOut, Refusal */
export function tell<T>(verb: 'POST' | 'DELETE', path: string, body?: object): Promise<T> {
  return exchange<T>(verb, path, body);
}

async function exchange<T>(verb: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await fetch(`/console/${path}`, {
    method: verb,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    headers: { ...HEADER, ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new Refusal(0, 'the service does not answer');
  });
  const told = (await response.json().catch(() => ({}))) as { error?: string };
  if (response.ok) return told as T;
  if (response.status === 401 && path !== 'session') throw new SignedOut(told.error ?? 'signed out');
  throw new Refusal(response.status, told.error ?? `the service answered ${response.status}`);
}
