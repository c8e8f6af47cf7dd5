import { createHmac } from 'node:crypto';

/** Carries the time and the HMAC-SHA256 of `<time>.<body>`: `t=<seconds>,v1=<hex>`. */
export const SIGNATURE_HEADER = 'X-Parley-Signature';

export interface SignedPost {
  readonly url: string;
  readonly secret: string;
  /** JSON. */
  readonly body: string;
  /** Milliseconds. */
  readonly timeout: number;
  readonly stop: AbortSignal;
}

/** Redirects are not followed: where it goes is the operator's word alone. @throws when it was not answered with success */
export async function signedPost({ url, secret, body, timeout, stop }: SignedPost): Promise<void> {
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      [SIGNATURE_HEADER]: `t=${seconds},v1=${signature}`,
    },
    body,
    redirect: 'manual',
    signal: AbortSignal.any([stop, AbortSignal.timeout(timeout)]),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`answered ${response.status}`);
}
