import { on } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { ServerControl, WireServerAddress, WireServerOptions } from '../server/wire-server.js';

/** Messages from the main thread to the worker. */
export type ToWorker =
  { readonly kind: 'close' } | { readonly kind: 'control'; readonly control: ServerControl };

/** What the worker answers. */
export type FromWorker =
  | { readonly kind: 'listening'; readonly address: WireServerAddress }
  | { readonly kind: 'closed' }
  | { readonly kind: 'controlled'; readonly error: string | null }
  | { readonly kind: 'failed'; readonly message: string; readonly typeError: boolean };

/** A started server, wherever it runs. */
export interface RunningServer extends WireServerAddress {
  readonly mode: 'worker' | 'in-process';
  /** Errors: what the server refuses. */
  control(control: ServerControl): Promise<void>;
  close(): Promise<void>;
}

/** Starts the server in a worker thread; undefined when there is no built worker file beside this one. */
export async function runInWorker(options: WireServerOptions): Promise<RunningServer | undefined> {
  const entry = new URL('./server-worker.js', import.meta.url);
  if (!existsSync(fileURLToPath(entry))) return undefined;
  const worker = new Worker(entry, {
    workerData: options,
    name: 'embedded-mongo',
    // Flags of the caller, such as --input-type, may be impossible for a worker.
    execArgv: [],
  });
  const { address } = await answer(worker, 'listening');
  let running = true;
  worker.once('exit', () => (running = false));
  // Without a listener the failure of the worker would end this process as well.
  worker.on('error', (error) => {
    process.emitWarning('the embedded database failed', {
      type: 'EmbeddedMongoFault',
      detail: error.stack ?? '',
    });
  });
  return {
    ...address,
    mode: 'worker',
    control: async (control) => {
      const request: ToWorker = { kind: 'control', control };
      worker.postMessage(request);
      const { error } = await answer(worker, 'controlled');
      if (error !== null) throw new Error(error);
    },
    close: async () => {
      if (!running) return;
      const request: ToWorker = { kind: 'close' };
      worker.postMessage(request);
      try {
        await answer(worker, 'closed');
      } finally {
        await worker.terminate();
      }
    },
  };
}

/** The next message of a kind. Errors: what the worker failed with. */
async function answer<K extends FromWorker['kind']>(
  worker: Worker,
  kind: K,
): Promise<Extract<FromWorker, { kind: K }>> {
  const messages = on(worker, 'message', { close: ['exit'] }) as AsyncIterable<[FromWorker]>;
  for await (const [message] of messages) {
    if (message.kind === kind) return message as Extract<FromWorker, { kind: K }>;
    if (message.kind !== 'failed') continue;
    void worker.terminate();
    throw message.typeError ? new TypeError(message.message) : new Error(message.message);
  }
  throw new Error('the embedded database ended unexpectedly');
}
