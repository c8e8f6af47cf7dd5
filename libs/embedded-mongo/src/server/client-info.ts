import type { Document } from '../bson/document.js';
import type { EmbeddedUser, ScramConversation } from './access.js';

/** What is known about the client at the other end of a connection. */
export interface ClientInfo {
  readonly connectionId: number;
  readonly address: string;
  /** The member of the replica set that it is connected to. */
  readonly member: number;
  appName: string | undefined;
  metadata: Document | undefined;
  /** Who logged in. */
  user: EmbeddedUser | undefined;
  /** A login that has begun; `short` ends without an empty exchange. */
  login: { readonly conversation: ScramConversation; readonly short: boolean } | undefined;
}
