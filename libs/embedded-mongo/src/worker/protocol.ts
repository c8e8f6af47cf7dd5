import type { WireServerAddress } from '../server/wire-server.js';

/** What the main thread tells the worker. */
export interface ToWorker {
  readonly kind: 'close';
}

/** What the worker answers. */
export type FromWorker =
  | { readonly kind: 'listening'; readonly address: WireServerAddress }
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly message: string; readonly typeError: boolean };
