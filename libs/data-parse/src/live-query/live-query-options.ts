/** A LiveQuery server, and what a client shows it. */
export interface LiveQueryServer {
  /** `ws://` or `wss://`. */
  readonly url: string;
  readonly applicationId: string;
  /** For servers that require a key from clients. */
  readonly restApiKey: string | null;
  /** Null: the connection receives the rows of sessions. Any other: all rows, if the server honours the key. */
  readonly masterKey: string | null;
}

/** The bounds of a connection; times in seconds. Only tests have others. */
export const LIVE_QUERY_BOUNDS = {
  pingInterval: 30,
  pongTimeout: 10,
  /** For the answer to the connection and to each subscription. */
  answerTimeout: 10,
  initialReconnectInterval: 1,
  maxReconnectInterval: 30,
  /** Failures in a row that open the circuit. */
  circuitFailureThreshold: 5,
  /** From the last failure until a new try. */
  circuitResetTimeout: 60,
  eventQueueSize: 1000,
  /** Bytes of one message. */
  maxMessageSize: 1_048_576,
  /** Time in which a message that has begun must arrive completely. */
  frameReadTimeout: 30,
};
export type LiveQueryBounds = Readonly<typeof LIVE_QUERY_BOUNDS>;

const THIS_MACHINE = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0']);

/** The reason why a URL cannot be used for LiveQuery, which does not repeat it: it may contain a password. Null when it can. */
export function socketUrlIssue(text: string): string | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || (url.protocol !== 'ws:' && url.protocol !== 'wss:')) return 'expected a ws:// or wss:// URL';
  if (url.protocol === 'ws:' && !THIS_MACHINE.has(url.hostname))
    return 'ws:// sends tokens in the clear: use wss:// for another machine';
  return null;
}
