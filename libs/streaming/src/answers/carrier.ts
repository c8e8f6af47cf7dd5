import type { JsonObject } from '#dispatcher';
import type { Reply } from '../reply.js';

/** The stream that an answer leaves on, or would if anything had to be said before it. */
export interface Carrier {
  /** Whether requests to the client may go beside the answer. */
  readonly carriesRequests: boolean;
  /** Sends a message beside the answer. @returns false when nothing carried it */
  send(message: JsonObject): boolean;
  /** Sends the answer; nothing follows it. */
  finish(answer: Reply): void;
  /** The call was cancelled by its client in a revision that then expects no answer. */
  drop(): void;
  /** The client went away. @returns whether the call goes on without it */
  left(): boolean;
  /** Ends the stream while the call goes on; only where the client can come back for the rest. */
  readonly endStream?: () => void;
}

/** The JSON text of an answer. */
export function jsonOf({ body, tail }: Reply): string {
  return tail ? body + tail.toString('utf8') : body;
}
