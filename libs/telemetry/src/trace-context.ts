/** The caller's span, from its `traceparent`. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all zero. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** As received, within the limits below; absent when it is invalid. */
  readonly state?: string;
}

/** Maximum characters and entries of a `tracestate` (W3C Trace Context, 3.3.1.5). */
const MAX_STATE = 512;
const MAX_STATE_ENTRIES = 32;

const PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const STATE_ENTRY =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
/** No version has longer ones; text after the four known fields is ignored. */
const MAX_PARENT = 128;

/** `undefined` for invalid values: the request then starts a trace of its own. */
export function readTraceParent(parent: unknown, state?: unknown): TraceParent | undefined {
  if (typeof parent !== 'string' || parent.length > MAX_PARENT) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = PARENT.exec(parent) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const kept = readTraceState(state);
  return {
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & 1) === 1,
    ...(kept !== undefined && { state: kept }),
  };
}

/** Keeps the whole state or none of it: a part would change the state of other vendors. */
function readTraceState(state: unknown): string | undefined {
  if (typeof state !== 'string' || state === '' || state.length > MAX_STATE) return undefined;
  const entries = state.split(',').map((entry) => entry.trim());
  const named = entries.filter((entry) => entry !== '');
  if (named.length === 0 || named.length > MAX_STATE_ENTRIES) return undefined;
  const keys = new Set(named.map((entry) => entry.slice(0, entry.indexOf('='))));
  if (keys.size !== named.length || !named.every((entry) => STATE_ENTRY.test(entry))) return undefined;
  return named.join(',');
}

export function writeTraceParent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
