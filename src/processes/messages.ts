/** From the first process to the others. */
export type Order = { readonly parley: 'close' | 'reload' };

/** From a process to the first one. */
export type Report =
  | { readonly parley: 'listening'; readonly url: string }
  /** It cannot start: what the operator has to read. */
  | { readonly parley: 'failed'; readonly text: string };

export function isOrder(message: unknown): message is Order {
  const { parley } = (message ?? {}) as { parley?: unknown };
  return parley === 'close' || parley === 'reload';
}

export function isReport(message: unknown): message is Report {
  const { parley, url, text } = (message ?? {}) as { parley?: unknown; url?: unknown; text?: unknown };
  return (
    (parley === 'listening' && typeof url === 'string') || (parley === 'failed' && typeof text === 'string')
  );
}
