import type { ServerControl, WireServerAddress } from '../server/wire-server.js';

/** Messages from the main thread to the worker. */
export type ToWorker =
  { readonly kind: 'close' } | { readonly kind: 'control'; readonly control: ServerControl };

/** What the worker answers. */
export type FromWorker =
  | { readonly kind: 'listening'; readonly address: WireServerAddress }
  | { readonly kind: 'closed' }
  | { readonly kind: 'controlled'; readonly error: string | null }
  | { readonly kind: 'failed'; readonly message: string; readonly typeError: boolean };
