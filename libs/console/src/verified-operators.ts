import type { Agent } from '#core';
import type { MessageBus } from '#state';

/** Milliseconds that may lie between two uses of a session for which nothing can be looked up. */
const LONGEST_PAUSE = 600_000;
/** Sessions that are remembered; the one verified longest ago is forgotten for another. */
const MAX_KNOWN = 1_000;

const ENDED_TOPIC = 'console.session.ended';

/**
 * Sessions that this process verified, for the time in which nothing can be looked up. Only one that has been in use ever since is
 * known then: a page that was open. One that was signed out on any replica is forgotten.
 */
export class VerifiedOperators {
  private readonly known = new Map<string, { readonly agent: Agent; readonly at: number }>();

  /** @param now milliseconds of a monotonic clock */
  constructor(
    private readonly bus: MessageBus,
    private readonly now: () => number = () => performance.now(),
  ) {
    bus.messages(ENDED_TOPIC).subscribe(({ session }) => this.known.delete(String(session)));
  }

  /** The shared state knows nothing against the session, and it is this agent's. */
  keep(session: string, agent: Agent): void {
    this.known.delete(session);
    this.known.set(session, { agent, at: this.now() });
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_KNOWN && oldest !== undefined) this.known.delete(oldest);
  }

  /** Whose session it was when it was verified; undefined: it was not used since, or this process never saw it. */
  find(session: string): Agent | undefined {
    const known = this.known.get(session);
    if (!known || this.now() - known.at > LONGEST_PAUSE) return undefined;
    this.keep(session, known.agent);
    return known.agent;
  }

  /** Here at once, and on every replica that can be reached. */
  forget(session: string): void {
    this.known.delete(session);
    void this.bus.publish(ENDED_TOPIC, { session }).catch(() => undefined);
  }
}
