import { createHash } from 'node:crypto';
import type { SealedLine } from '../chain/record-seal.js';
import type { RecordDelivery } from './record-delivery.js';
import { signedPost } from './signed-post.js';

export interface WebhookOptions {
  readonly url: string;
  /** Signs what is sent. */
  readonly secret: string;
  /** Milliseconds for each attempt. */
  readonly timeout: number;
}

/** Records in batches to somebody else's system, each at least once: `chain` and `seq` tell which came before. */
export class WebhookDelivery implements RecordDelivery {
  readonly name: string;
  readonly batch = 200;
  private readonly stop = new AbortController();

  constructor(private readonly options: WebhookOptions) {
    // The address may hold a secret.
    this.name = `webhook ${createHash('sha256').update(options.url).digest('hex').slice(0, 8)}`;
  }

  /** Nothing to ask: the first batch tells. */
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
