import { refusals, Refused } from '#core';
import {
  CachedPrincipalDirectory,
  type PrincipalDirectory,
  RecordReader,
  type StoreCall,
  StoreError,
} from '#data';
import type { ParseCredentials } from '../connection/parse-connection.js';
import { pipelineOperation, authModeOf, type Route, type RoutedOperation, routesFor } from './route-table.js';

/** Watches over the sessions that calls are made with. */
export interface SessionWatch {
  /** @throws StoreError `session_ended`; asks Parse Server when it was last asked too long ago */
  assertAlive(token: string): Promise<void>;
  /** Parse Server did not know it any more. */
  ended(token: string): void;
}

/** The ways to data that a deployment has. */
export interface DataRoutes {
  /** Null: MongoDB is not configured. */
  readonly direct: RecordReader | null;
  /** Null: nothing may be asked with the master key. */
  readonly restMaster: RecordReader | null;
  rest(credentials: ParseCredentials): RecordReader;
  readonly sessions: SessionWatch;
}

/** Why a route that the table names is not taken. */
export const NEEDS_DIRECT =
  'This needs direct access to MongoDB (database.uri), which is not configured: Parse Server does not answer it';
const NOT_THIS_WAY =
  'This cannot be asked of Parse Server on behalf of this caller, and no other way is open to it';

/** The first route of a cell that is open and can be asked. @throws Refused when there is none */
export function chosenRoute(
  operation: RoutedOperation,
  call: Pick<StoreCall, 'agent'>,
  isOpen: (route: Route) => boolean,
): Route {
  const routes = routesFor(operation, authModeOf(call.agent));
  const route = routes.find(isOpen);
  if (route) return route;
  throw new Refused(refusals.noRoute(routes.includes('direct') ? NEEDS_DIRECT : NOT_THIS_WAY));
}

export function pipelineRouteOf(call: StoreCall): RoutedOperation {
  return pipelineOperation(call.tool);
}

/** Reads with the operator's authority. @throws Refused when neither way is configured */
export function operatorReader({ direct, restMaster }: DataRoutes): RecordReader {
  const reader = direct ?? restMaster;
  if (!reader) throw new Refused(refusals.noRoute(NEEDS_DIRECT));
  return reader;
}

/** Runs work that carries a session to Parse Server; one that has ended is forgotten everywhere. */
export async function withSession<T>(
  { agent }: Pick<StoreCall, 'agent'>,
  sessions: SessionWatch,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { identity } = agent;
    if (identity.kind === 'sessionToken' && error instanceof StoreError && error.code === 'session_ended')
      sessions.ended(identity.token);
    throw error;
  }
}

/** Seconds for which Parse Server is believed about a session where it does not see the call itself. */
const RECHECK = 30;

/**
 * Who a session belongs to is remembered for an hour, because Parse Server judges each request that carries one. Calls that
 * go to MongoDB are checked nowhere else, so for them Parse Server is requested again after thirty seconds.
 */
export class SessionRecheck implements SessionWatch {
  private readonly recent: CachedPrincipalDirectory;

  /** @param remembered receives sessions that turn out to have ended */
  constructor(
    directory: PrincipalDirectory,
    private readonly remembered: Pick<CachedPrincipalDirectory, 'forgetSession'>,
    recheckSeconds = RECHECK,
  ) {
    this.recent = new CachedPrincipalDirectory(directory, { identitySeconds: recheckSeconds });
  }

  async assertAlive(token: string): Promise<void> {
    if (await this.recent.ownerOfSession(token)) return;
    this.ended(token);
    throw new StoreError('session_ended', { store: 'Parse Server' });
  }

  ended(token: string): void {
    this.recent.forgetSession(token);
    this.remembered.forgetSession(token);
  }
}
