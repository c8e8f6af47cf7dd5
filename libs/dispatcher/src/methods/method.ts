import type { InputRound } from '../asks/modern-asks.js';
import type { DispatchContext } from '../dispatch-context.js';
import type { JsonObject } from '../json-object.js';
import type { PreparedResult, StreamedResult } from '../kernel-reply.js';
import type { Dialect, LegacyVersion } from '../protocol-versions.js';
import type { CacheHint } from '../result-envelope.js';

export interface MethodRequest {
  readonly params: JsonObject;
  readonly context: DispatchContext;
  readonly dialect: Dialect;
  /** Of a method that may ask, in the stateless era. */
  readonly round?: InputRound;
}

/** Returns the result without the members of the era, or one that is complete already. @throws ProtocolFault */
type MethodHandler = (request: MethodRequest) => Handled | Promise<Handled>;
type Handled = JsonObject | PreparedResult | StreamedResult;

/** One row of the method table. */
export interface Method {
  /** First legacy revision that has it; `null`: none. */
  readonly legacySince: LegacyVersion | null;
  readonly modern: boolean;
  readonly cache?: CacheHint;
  readonly handle: MethodHandler;
}

export function existsIn(method: Method, dialect: Dialect): boolean {
  if (dialect.era === 'modern') return method.modern;
  return method.legacySince !== null && dialect.version >= method.legacySince;
}
