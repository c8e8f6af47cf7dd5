import { ConfigError, type Environment, processNumber } from '#config';
import type { RunningService } from '../running-service.js';

/** From the first process to the others. */
export type Order = { readonly parley: 'close' | 'reload' };

/** From a process to the first one. */
export type Report =
  | { readonly parley: 'listening'; readonly url: string }
  /** It cannot start: what the operator has to read. */
  | { readonly parley: 'failed'; readonly text: string };

function isOrder(message: unknown): message is Order {
  const { parley } = (message ?? {}) as { parley?: unknown };
  return parley === 'close' || parley === 'reload';
}

export function isReport(message: unknown): message is Report {
  const { parley, url, text } = (message ?? {}) as { parley?: unknown; url?: unknown; text?: unknown };
  return (
    (parley === 'listening' && typeof url === 'string') || (parley === 'failed' && typeof text === 'string')
  );
}

const report = (message: Report) => void process.send?.(message);

/** Whether the first process of the service started this one. */
export const isOneOfSeveral = (env: Environment): boolean =>
  processNumber(env) !== null && process.send !== undefined;

/**
 * Obeys the first process. A signal to the group of processes, as a terminal or systemd sends it, reaches this one too: only
 * SIGTERM ends it by itself, and a second one changes nothing.
 */
export function obeyFirstProcess(service: RunningService): void {
  let closing = false;
  const close = () => {
    if (closing) return;
    closing = true;
    service.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGTERM', close);
  process.on('SIGINT', () => undefined);
  process.on('message', (message) => {
    if (!isOrder(message)) return;
    if (message.parley === 'close') close();
    else void service.reload();
  });
  report({ parley: 'listening', url: service.url });
}

/** Reports to the first process why this one cannot start, and ends it. */
export async function endWithFailure(error: unknown): Promise<never> {
  const text = error instanceof ConfigError ? error.message : String((error as Error).stack);
  const message: Report = { parley: 'failed', text };
  await new Promise((sent) => process.send?.(message, sent));
  process.exit(1);
}
