import { createHash, createHmac } from 'node:crypto';
import { pinnedRequest, type ResolveHost } from '#core';
import type { SealedLine } from '../chain/audit-chain.js';
import type { RecordDelivery } from './record-delivery.js';

/** Time and HMAC-SHA256 of `<time>.<body>`: `t=<seconds>,v1=<hex>`. */
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

/**
 * Posts a signed body. Redirects are not followed, and a name must not lead to this machine. @throws unless the
 * answer is a success
 */
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

export interface WebhookOptions {
  readonly url: string;
  /** Key of the signature. */
  readonly secret: string;
  /** Milliseconds for each attempt. */
  readonly timeout: number;
}

/** Posts records in batches. Each record arrives at least once; `chain` and `seq` identify repetitions. */
export class WebhookDelivery implements RecordDelivery {
  readonly name: string;
  readonly batch = 200;
  private readonly stop = new AbortController();

  constructor(private readonly options: WebhookOptions) {
    // The URL may hold a secret, so the name shows a digest.
    this.name = `webhook ${createHash('sha256').update(options.url).digest('hex').slice(0, 8)}`;
  }

  /** A webhook cannot be asked for its latest record. */
  open(): Promise<null> {
    return Promise.resolve(null);
  }

  deliver(records: readonly SealedLine[]): Promise<void> {
    const body = `{"type":"audit.records","records":[${records.map(({ line }) => line).join(',')}]}`;
    return signedPost({ ...this.options, body, stop: this.stop.signal });
  }

  close(): Promise<void> {
    this.stop.abort();
    return Promise.resolve();
  }
}
