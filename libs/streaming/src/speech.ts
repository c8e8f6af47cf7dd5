import type { LogLevel } from '#agent';
import type { Era, JsonObject } from '#dispatcher';

/** How a client speaks: by its session, or by each request. */
export interface Speech {
  readonly era: Era;
  readonly version: string;
  readonly clientCapabilities: JsonObject;
  /** Of its session; default: none was set. */
  readonly logLevel?: LogLevel | undefined;
}
