import { randomUUID } from 'node:crypto';
import { type Session, type SessionDraft, SessionStore } from './session-store.js';

/**
 * Sessions in this process's memory: they serve one process only, and replicas need a shared store.
 * The longest unused session or tombstone is forgotten first, which turns its id into a label without power.
 */
export class ProcessSessionStore extends SessionStore {
  private readonly sessions = new Map<string, Session>();

  /** @param maxSessions remembered at once, tombstones included. Default 10,000 */
  constructor(private readonly maxSessions = 10_000) {
    super();
    if (!Number.isSafeInteger(maxSessions) || maxSessions < 1) {
      throw new TypeError('maxSessions must be a positive integer');
    }
  }

  create({ proposedId, owner, version, capabilities }: SessionDraft): Promise<string> {
    const id = proposedId !== undefined && this.mayHave(proposedId, owner) ? proposedId : randomUUID();
    this.keep(id, { owner, version, capabilities, terminated: false });
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

  /** Re-inserting keeps the map in order of last use. */
  private keep(id: string, session: Session): void {
    this.sessions.delete(id);
    this.sessions.set(id, session);
    if (this.sessions.size <= this.maxSessions) return;
    const idle = this.sessions.keys().next().value;
    if (idle !== undefined) this.sessions.delete(idle);
  }
}
