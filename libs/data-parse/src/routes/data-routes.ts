import { refuse } from '#core';
import { type CachedPrincipalDirectory, type ReadStore, type StoreCall, StoreError } from '#data';
import type { ReadHooks } from '#policy';
import type { ParseCredentials } from '../connection/parse-connection.js';
import { NEEDS_DIRECT, pipelineOperation, type RoutedOperation } from './route-table.js';

/** Checks the sessions that calls are made with. */
export interface SessionWatch {
  /** @throws StoreError `session_ended`; queries Parse Server when the last check is too old */
  assertAlive(token: string): Promise<void>;
  /** Parse Server rejected the session. */
  handleEnd(token: string): void;
}

/** The data routes of a deployment. */
export interface DataRoutes {
  /** Null: MongoDB is not configured. */
  readonly direct: ReadStore | null;
  /** Null: requests with the master key are not possible. */
  readonly restMaster: ReadStore | null;
  rest(credentials: ParseCredentials): ReadStore;
  readonly sessions: SessionWatch;
  /** Of classes that do not say it themselves. */
  readonly readHooks: ReadHooks;
}

/** The classes of which Cloud Code may decide what a user reads. */
export function listHooked(
  classNames: Iterable<string>,
  { scope }: Pick<StoreCall, 'scope'>,
  readHooks: ReadHooks,
): string[] {
  return [...new Set(classNames)].filter(
    (className) => (scope.classPolicy(className).readHooks ?? readHooks) !== 'none',
  );
}

export function findPipelineRoute(call: StoreCall): RoutedOperation {
  return pipelineOperation(call.tool);
}

/** Reads with the operator's authority. @throws Refused when neither route is configured */
export function operatorStore({ direct, restMaster }: DataRoutes): ReadStore {
  const store = direct ?? restMaster;
  if (!store) throw refuse.noRoute(NEEDS_DIRECT);
  return store;
}

/** Runs work that sends a session to Parse Server; an ended session is removed from every cache. */
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
      sessions.handleEnd(identity.token);
    throw error;
  }
}

/** Looks sessions up as the cache of identities does: what Parse Server said is believed for that long, on every route. */
export class CachedSessionWatch implements SessionWatch {
  constructor(
    private readonly directory: Pick<CachedPrincipalDirectory, 'ownerOfSession' | 'forgetSession'>,
  ) {}

  async assertAlive(token: string): Promise<void> {
    if (!(await this.directory.ownerOfSession(token)))
      throw new StoreError('session_ended', { store: 'Parse Server' });
  }

  handleEnd(token: string): void {
    this.directory.forgetSession(token);
  }
}
