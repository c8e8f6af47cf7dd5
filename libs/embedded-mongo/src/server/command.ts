import type { Timestamp } from 'bson';
import type { Document } from '../bson/document.js';
import type { Workspace } from '../storage/workspace.js';
import type { ClientInfo } from './client-info.js';
import type { Operation } from './operation.js';
import type { ServerState } from './server-state.js';
import type { ServerSession } from './sessions.js';
import type { Transaction } from './transaction.js';

/** Everything a command may use. */
export interface CommandContext {
  readonly server: ServerState;
  readonly client: ClientInfo;
  readonly name: string;
  readonly db: string;
  readonly operation: Operation;
  /** The live data, a snapshot of it, or the view of the transaction the command runs in. */
  readonly workspace: Workspace;
  readonly session: ServerSession | undefined;
  readonly transaction: Transaction | undefined;
  readonly txnNumber: string | undefined;
  /** The one moment the command runs at. */
  readonly now: Date;
  /** The time of the set at that moment; undefined for a standalone. */
  readonly clusterTime: Timestamp | undefined;
  /** The encoded documents of an array field of the command. */
  rawDocuments(field: string): Buffer[] | undefined;
}

/** Answers one command; throws MongoError to refuse it. The reply may hold `RawBson` documents. */
export type CommandHandler = (command: Document, ctx: CommandContext) => Document | Promise<Document>;
