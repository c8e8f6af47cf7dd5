/** One subscribing of a session that is under way. */
export interface Attempt {
  /** The session ended meanwhile: what was begun for it is undone by whoever began it. */
  left: boolean;
}

/** What sessions are subscribing to at this moment, so that one that leaves in the middle of it leaves nothing behind. */
export class RunningAttempts {
  private readonly running = new Map<string, Set<Attempt>>();

  begin(session: string): Attempt {
    const attempt = { left: false };
    const beside = this.running.get(session) ?? new Set();
    this.running.set(session, beside.add(attempt));
    return attempt;
  }

  end(session: string, attempt: Attempt): void {
    const beside = this.running.get(session);
    beside?.delete(attempt);
    if (beside?.size === 0) this.running.delete(session);
  }

  leave(session: string): void {
    for (const attempt of this.running.get(session) ?? []) attempt.left = true;
  }
}
