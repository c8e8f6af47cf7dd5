import { parentPort, workerData } from 'node:worker_threads';
import { WireServer, type WireServerOptions } from '../server/wire-server.js';
import type { FromWorker, ToWorker } from './host.js';

// The entry of the worker thread: starts the server with the options that it gets, and closes it when it is asked to.

const port = parentPort;
if (port) {
  const tell = (message: FromWorker): void => port.postMessage(message);
  const fail = (error: unknown): void =>
    tell({
      kind: 'failed',
      message: error instanceof Error ? error.message : String(error),
      typeError: error instanceof TypeError,
    });
  const started = WireServer.listen(workerData as WireServerOptions).then(({ server, address }) => {
    port.on('message', (message: ToWorker) => {
      if (message.kind === 'close') {
        server.close().then(() => tell({ kind: 'closed' }), fail);
        return;
      }
      try {
        server.control(message.control);
        tell({ kind: 'controlled', error: null });
      } catch (error) {
        tell({ kind: 'controlled', error: error instanceof Error ? error.message : String(error) });
      }
    });
    tell({ kind: 'listening', address });
  });
  started.catch(fail);
}
