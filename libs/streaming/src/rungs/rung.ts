import type { SessionStore } from '#cluster';
import type { Kernel, WarningLog } from '#dispatcher';
import type { Authenticator } from '#auth';
import type { Telemetry } from '#telemetry';
import type { Downloads } from '../downloads/downloads.js';
import type { EdgeCounts } from '../edge-counts.js';
import type { EdgeSettings } from '../edge-options.js';
import type { Exchange } from '../exchange.js';
import type { OpenStreams } from '../open-streams.js';
import type { PendingBodies } from '../pending-bodies.js';
import type { Reply } from '../reply.js';
import type { KeepAlives } from '../sse/keep-alives.js';
import type { UnreadAnswers } from '../unread-answers.js';
import type { Wire } from '../wire/wire.js';

/** A client that left before it had its answer. */
export interface AbandonedDispatch {
  readonly reason: 'client_disconnect';
  /** False: the answer was there and could not be delivered. */
  readonly dispatcher_alive: boolean;
  readonly request_id: unknown;
}

/** What the rungs work with. */
export interface EdgeParts {
  readonly settings: EdgeSettings;
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  readonly sessions: SessionStore;
  readonly wire: Wire;
  readonly keepAlives: KeepAlives;
  readonly counts: EdgeCounts;
  readonly openStreams: OpenStreams;
  /** Bodies that are read or worked on. */
  readonly pendingBodies: PendingBodies;
  /** What clients have not read yet. */
  readonly unread: UnreadAnswers;
  /** Absent where no files are served. */
  readonly downloads: Downloads | undefined;
  readonly onAbandoned: (dispatch: AbandonedDispatch) => void;
  /** Absent where nothing is measured. */
  readonly telemetry: Telemetry | undefined;
  readonly log: WarningLog;
  /** False once the edge is closing. */
  readonly accepting: boolean;
}

/**
 * Answers a request that goes no further, or `null` to let it pass. `'gone'`: there is nobody left to answer.
 * `'streamed'`: the answer leaves, or left, by itself.
 */
export type RungVerdict = Reply | 'gone' | 'streamed' | null;

/** One named check of the ladder. */
export interface Rung {
  readonly name: string;
  readonly check: (exchange: Exchange, edge: EdgeParts) => RungVerdict | Promise<RungVerdict>;
}
