import type { LiveQueryServer } from './live-query-options.js';

/** A query for changes of one class. */
export interface LiveQuery {
  readonly className: string;
  readonly where: Readonly<Record<string, unknown>>;
  /** Fields that events carry. */
  readonly keys?: readonly string[];
  /** Token of the user whose rights apply to the rows. Never on an admin connection. */
  readonly sessionToken?: string;
}

export type EventOp = 'create' | 'update' | 'delete' | 'enter' | 'leave';

/** A frame from Parse Server that this client supports. */
export type ServerFrame =
  | { readonly op: 'connected' }
  | { readonly op: 'subscribed' | 'unsubscribed'; readonly requestId: number }
  | { readonly op: EventOp; readonly requestId: number; readonly objectId: string }
  /** An event that names no row: something has changed. */
  | { readonly op: 'unreadable'; readonly requestId: number }
  | {
      readonly op: 'error';
      readonly code: number | null;
      readonly error: string;
      readonly requestId: number | null;
      readonly reconnect: boolean;
    };

const EVENTS: ReadonlySet<unknown> = new Set<EventOp>(['create', 'update', 'delete', 'enter', 'leave']);

/**
 * Operators that run code or reach fields that no filter may name. The client does not rely on Parse Server to refuse them.
 */
const DENIED_OPERATORS = new Set(['$where', '$function', '$accumulator', '$expr']);
const MAX_DEPTH = 20;

/** Null for text that is not a frame of the protocol. */
export function readFrame(text: string): ServerFrame | null {
  let frame: unknown;
  try {
    frame = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof frame !== 'object' || frame === null) return null;
  const { op, requestId, object, code, error, reconnect } = frame as Record<string, unknown>;
  if (op === 'connected') return { op };
  if (op === 'error') {
    return {
      op,
      code: typeof code === 'number' ? code : null,
      error: typeof error === 'string' ? error : 'unknown error',
      requestId: typeof requestId === 'number' ? requestId : null,
      reconnect: reconnect !== false,
    };
  }
  if (typeof requestId !== 'number') return null;
  if (op === 'subscribed' || op === 'unsubscribed') return { op, requestId };
  const objectId = (object as Record<string, unknown> | null | undefined)?.['objectId'];
  if (!EVENTS.has(op)) return null;
  if (typeof objectId !== 'string') return { op: 'unreadable', requestId };
  return { op: op as EventOp, requestId, objectId };
}

export function connectFrame({ applicationId, restApiKey, masterKey }: LiveQueryServer): string {
  return JSON.stringify({
    op: 'connect',
    applicationId,
    ...(restApiKey && { restAPIKey: restApiKey }),
    ...(masterKey && { masterKey }),
  });
}

export function subscribeFrame(requestId: number, query: LiveQuery): string {
  const { className, where, keys = [], sessionToken } = query;
  return JSON.stringify({
    op: 'subscribe',
    requestId,
    query: { className, where, ...(keys.length > 0 && { keys }) },
    ...(sessionToken !== undefined && { sessionToken }),
  });
}

export function unsubscribeFrame(requestId: number): string {
  return JSON.stringify({ op: 'unsubscribe', requestId });
}

/** @throws TypeError for a constraint that names a forbidden operator or field */
export function assertHarmless(where: unknown, depth = 0): void {
  if (typeof where !== 'object' || where === null) return;
  if (depth > MAX_DEPTH) throw new TypeError('where: nested too deep');
  for (const [key, value] of Object.entries(where)) {
    const internal = key.startsWith('_') && !Array.isArray(where) && key !== '__type' && key !== '__op';
    if (DENIED_OPERATORS.has(key) || internal) throw new TypeError('where: names what no filter may');
    assertHarmless(value, depth + 1);
  }
}
