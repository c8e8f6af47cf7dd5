import { CachedPrincipalDirectory, type PrincipalDirectory, StoreError } from '#data';
import type { SessionWatch } from './data-routes.js';

/** Seconds for which Parse Server is believed about a session where it does not see the call itself. */
const RECHECK = 30;

/**
 * Who a session belongs to is remembered for an hour, because Parse Server judges each request that carries one. Calls that
 * go to MongoDB are judged by nobody else, so for them Parse Server is asked again after thirty seconds.
 */
export class SessionRecheck implements SessionWatch {
  private readonly recent: CachedPrincipalDirectory;

  /** @param remembered what is told when a session turns out to have ended */
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
