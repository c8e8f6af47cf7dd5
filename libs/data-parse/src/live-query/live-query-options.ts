/** What happens to events that arrive faster than they are consumed. */
export type BackpressureStrategy = 'drop_oldest' | 'drop_newest' | 'block';

/** Times are in seconds. */
export interface LiveQueryOptions {
  /** `ws://` or `wss://`. Default: derived from `serverUrl`. */
  readonly url?: string | null;
  /** Of the Parse Server: its host and port, `https` becoming `wss`. */
  readonly serverUrl?: string | null;
  readonly applicationId: string;
  readonly clientKey?: string | null;
  /** For servers that require a key from clients. */
  readonly restApiKey?: string | null;
  /** Sent on an admin connection only. Default none. */
  readonly masterKey?: string | null;
  /** An admin connection: it receives every row. Default false. */
  readonly useMasterKey?: boolean;
  /** Default true. */
  readonly autoReconnect?: boolean;
  /** Default 30. */
  readonly pingInterval?: number;
  /** Default 10. */
  readonly pongTimeout?: number;
  /** For the answer to the connection and to each subscription. Default 10. */
  readonly answerTimeout?: number;
  /** Default 1. */
  readonly initialReconnectInterval?: number;
  /** Default 30. */
  readonly maxReconnectInterval?: number;
  /** Default 1.5. */
  readonly reconnectMultiplier?: number;
  /** Share of the interval, 0 to 1. Default 0.2. */
  readonly reconnectJitter?: number;
  /** Failures in a row that open the circuit. Default 5. */
  readonly circuitFailureThreshold?: number;
  /** From the last failure until a new try. Default 60. */
  readonly circuitResetTimeout?: number;
  /** Events. Default 1000. */
  readonly eventQueueSize?: number;
  /** Default `drop_oldest`. */
  readonly backpressureStrategy?: BackpressureStrategy;
  /** Bytes of one message. Default 1,048,576. */
  readonly maxMessageSize?: number;
  /** Time in which a message that has begun must arrive completely. Default 30. */
  readonly frameReadTimeout?: number;
  /** Default TLS 1.2. */
  readonly sslMinVersion?: 'TLSv1.2' | 'TLSv1.3';
  readonly sslMaxVersion?: 'TLSv1.2' | 'TLSv1.3' | null;
  /** Permits `ws://` to another machine. Default false. */
  readonly allowInsecure?: boolean;
}

export type LiveQuerySettings = Required<Omit<LiveQueryOptions, 'url' | 'serverUrl'>> & {
  readonly url: string;
};

const DEFAULTS = {
  clientKey: null,
  restApiKey: null,
  masterKey: null,
  useMasterKey: false,
  autoReconnect: true,
  pingInterval: 30,
  pongTimeout: 10,
  answerTimeout: 10,
  initialReconnectInterval: 1,
  maxReconnectInterval: 30,
  reconnectMultiplier: 1.5,
  reconnectJitter: 0.2,
  circuitFailureThreshold: 5,
  circuitResetTimeout: 60,
  eventQueueSize: 1000,
  backpressureStrategy: 'drop_oldest',
  maxMessageSize: 1_048_576,
  frameReadTimeout: 30,
  sslMinVersion: 'TLSv1.2',
  sslMaxVersion: null,
  allowInsecure: false,
} as const;

const POSITIVE = [
  'pingInterval',
  'pongTimeout',
  'answerTimeout',
  'initialReconnectInterval',
  'maxReconnectInterval',
  'reconnectMultiplier',
  'circuitFailureThreshold',
  'circuitResetTimeout',
  'eventQueueSize',
  'maxMessageSize',
  'frameReadTimeout',
] as const;

const STRATEGIES: ReadonlySet<unknown> = new Set(['drop_oldest', 'drop_newest', 'block']);
const TLS_VERSIONS: ReadonlySet<unknown> = new Set(['TLSv1.2', 'TLSv1.3']);
const THIS_MACHINE = new Set(['localhost', '127.0.0.1', '[::1]', '0.0.0.0']);

/** @throws TypeError naming the option that cannot be used */
export function liveQuerySettings(options: LiveQueryOptions): LiveQuerySettings {
  const { url, serverUrl, ...rest } = options;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  const settings = { ...DEFAULTS, ...given, applicationId: options.applicationId } as Omit<
    LiveQuerySettings,
    'url'
  >;
  for (const name of POSITIVE) {
    if (!(Number.isFinite(settings[name]) && settings[name] > 0)) invalid(name, 'expected a positive number');
  }
  const { reconnectJitter: jitter } = settings;
  if (!(jitter >= 0 && jitter <= 1)) invalid('reconnectJitter', 'expected a number from 0 to 1');
  if (!STRATEGIES.has(settings.backpressureStrategy)) invalid('backpressureStrategy', 'unknown');
  if (!TLS_VERSIONS.has(settings.sslMinVersion)) invalid('sslMinVersion', 'unknown');
  if (settings.sslMaxVersion !== null && !TLS_VERSIONS.has(settings.sslMaxVersion))
    invalid('sslMaxVersion', 'unknown');
  return Object.freeze({ ...settings, url: socketUrl(url ?? deriveUrl(serverUrl), settings.allowInsecure) });
}

/** The reason why a URL cannot be used for LiveQuery; null when it can. */
export function socketUrlIssue(url: string): string | null {
  try {
    socketUrl(url, false);
    return null;
  } catch (error) {
    return (error as Error).message.replace(/^url: /, '');
  }
}

function deriveUrl(serverUrl: string | null | undefined): string {
  if (!serverUrl || !URL.canParse(serverUrl)) return invalid('url', 'expected a ws:// or wss:// URL');
  const { protocol, host } = new URL(serverUrl);
  return `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/`;
}

/** A URL may contain a password, so no error message repeats it. */
function socketUrl(text: string, allowInsecure: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || (url.protocol !== 'ws:' && url.protocol !== 'wss:'))
    return invalid('url', 'expected a ws:// or wss:// URL');
  if (url.protocol === 'ws:' && !allowInsecure && !THIS_MACHINE.has(url.hostname)) {
    return invalid('url', 'ws:// sends tokens in the clear: use wss:// for another machine');
  }
  return url.href;
}

function invalid(option: string, message: string): never {
  throw new TypeError(`${option}: ${message}`);
}
