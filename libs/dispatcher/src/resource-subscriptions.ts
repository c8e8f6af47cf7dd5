import type { Observable } from 'rxjs';
import type { DispatchContext } from './dispatch-context.js';

/** What a stateless listener hears: first which of its resources are watched, then each change of one of them. */
export type ListenEvent = { readonly watched: readonly string[] } | { readonly updated: string };

/** Clients' wish to hear that a resource has changed. A client is told the address, never what changed. */
export abstract class ResourceSubscriptions {
  /** Whether a subscription could be served at this moment. */
  abstract readonly supported: boolean;
  /**
   * On behalf of `context.sessionId`; updates go to that session's listening stream.
   * @returns false when the session ended meanwhile
   * @throws ProtocolFault for an address that cannot be subscribed to, and when a limit is reached; Refused as reading would
   */
  abstract subscribe(uri: string, context: DispatchContext): Promise<boolean>;
  /** An address that was not subscribed to is none the less not subscribed to afterwards. */
  abstract unsubscribe(uri: string, context: DispatchContext): Promise<void>;
  /** Cold: watches from subscription to unsubscription. Addresses that the agent may not watch are left out of `watched`. */
  abstract listen(uris: readonly string[], context: DispatchContext): Observable<ListenEvent>;
}
