import type { IncomingHttpHeaders } from 'node:http';
import type { LogLevel } from '#agent';
import type { Era, JsonObject } from '#dispatcher';
import type { Message } from './message.js';

/** How a client speaks: by its session, or by each request. */
export interface Speech {
  readonly era: Era;
  readonly version: string;
  readonly clientCapabilities: JsonObject;
  /** Of its session; default: none was set. */
  readonly logLevel?: LogLevel | undefined;
}

/** A message whose way of speaking is being found out. */
export interface Spoken {
  readonly message: Message;
  /** None on a transport without. */
  readonly headers: IncomingHttpHeaders;
  readonly era: Era;
  version: string;
  clientCapabilities: JsonObject;
}
