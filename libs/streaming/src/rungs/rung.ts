import type { SessionStore } from '#cluster';
import type { Kernel, WarningLog } from '#dispatcher';
import type { Authenticator } from '#auth';
import type { EdgeSettings } from '../edge-options.js';
import type { Exchange } from '../exchange.js';
import type { Reply } from '../reply.js';

/** What the rungs work with. */
export interface EdgeParts {
  readonly settings: EdgeSettings;
  readonly kernel: Kernel;
  readonly authenticator: Authenticator;
  readonly sessions: SessionStore;
  readonly log: WarningLog;
  /** False once the edge is closing. */
  readonly accepting: boolean;
}

/** Answers a request that goes no further, or `null` to let it pass. `'gone'`: there is nobody left to answer. */
export type RungVerdict = Reply | 'gone' | null;

/** One named check of the ladder. */
export interface Rung {
  readonly name: string;
  readonly check: (exchange: Exchange, edge: EdgeParts) => RungVerdict | Promise<RungVerdict>;
}
