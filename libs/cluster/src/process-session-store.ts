import { randomUUID } from 'node:crypto';
import { type Clock, ExpiringMap, processClock } from './expiring-map.js';
import { SESSION_SHARE } from './shares.js';
import { type Session, SESSION_TTL, type SessionDraft, SessionStore } from './session-store.js';

/**
 * Sessions in this process's memory: they serve one process only, and replicas need a shared store.
 * A principal that opens more than its share loses its longest unused session or tombstone; when there is no room at all, the
 * principal that has the most does. That turns the id into a label without power.
 */
export class ProcessSessionStore extends SessionStore {
  private readonly sessions: ExpiringMap<Session>;

  /**
   * @param maxSessions remembered at once, tombstones included. Default 10,000
   * @param maxPerPrincipal of them. Default 1,000
   * @param ttl milliseconds without use after which a session is forgotten. Default 24 hours
   */
  constructor(
    maxSessions = 10_000,
    private readonly ttl = SESSION_TTL,
    now: Clock = processClock,
    maxPerPrincipal = SESSION_SHARE.entries,
  ) {
    super();
    this.sessions = new ExpiringMap(maxSessions, now, Infinity, { entries: maxPerPrincipal });
  }

  override get held(): number {
    return this.sessions.size;
  }

  create({ proposedId, ...draft }: SessionDraft): Promise<string> {
    const { owner } = draft;
    const id = proposedId !== undefined && this.mayHave(proposedId, owner) ? proposedId : randomUUID();
    this.keep(id, { ...draft, terminated: false });
    return Promise.resolve(id);
  }

  find(id: string): Promise<Session | undefined> {
    const session = this.sessions.get(id);
    if (session) this.keep(id, session);
    return Promise.resolve(session);
  }

  terminate(id: string): Promise<void> {
    const session = this.sessions.get(id);
    if (session) this.keep(id, { ...session, capabilities: {}, terminated: true });
    return Promise.resolve();
  }

  private mayHave(id: string, owner: string): boolean {
    const holder = this.sessions.get(id);
    return !holder || (holder.owner === owner && !holder.terminated);
  }

  /** Setting it anew keeps the map in order of last use. */
  private keep(id: string, session: Session): void {
    this.sessions.set(id, session, this.ttl, { owner: session.owner });
  }
}
