import { createHmac } from 'node:crypto';
import { pinnedRequest, type ResolveHost } from '#agent';

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
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost;
}

/** Redirects are not followed, and a name does not lead to this machine: where it goes is the operator's word alone. @throws when it was not answered with success */
export async function signedPost({ url, secret, body, timeout, stop, resolve }: SignedPost): Promise<void> {
  const seconds = Math.floor(Date.now() / 1000);
  const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
  const response = await pinnedRequest(url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      [SIGNATURE_HEADER]: `t=${seconds},v1=${signature}`,
    },
    body,
    rule: 'elsewhere',
    resolve,
    signal: AbortSignal.any([stop, AbortSignal.timeout(timeout)]),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`answered ${response.status}`);
}
