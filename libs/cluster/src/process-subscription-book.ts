import { type BookEntry, type BookLimits, SUBSCRIPTION_TTL, SubscriptionBook } from './subscription-book.js';

interface Page {
  readonly uris: Set<string>;
  holder: string | undefined;
  /** Of the entries. */
  owner: string | undefined;
  until: number;
}

/** A book in this process's memory: it serves one process only. */
export class ProcessSubscriptionBook extends SubscriptionBook {
  private readonly pages = new Map<string, Page>();

  /**
   * @param ttl milliseconds that an untouched session is remembered. Default one hour
   * @param maxHeld sessions remembered for their stream alone. Default 10,000
   * @param now milliseconds; for tests
   */
  constructor(
    private readonly ttl = SUBSCRIPTION_TTL,
    private readonly maxHeld = 10_000,
    private readonly now: () => number = () => performance.now(),
  ) {
    super();
  }

  add(session: string, uri: string, limits: BookLimits): Promise<BookEntry> {
    return Promise.resolve(this.addNow(session, uri, limits));
  }

  remove(session: string, uri: string): Promise<void> {
    const page = this.pages.get(session);
    page?.uris.delete(uri);
    if (page && page.uris.size === 0 && page.holder === undefined) this.pages.delete(session);
    return Promise.resolve();
  }

  of(session: string): Promise<readonly string[]> {
    return Promise.resolve([...(this.page(session)?.uris ?? [])]);
  }

  hold(session: string, replica: string): Promise<string | undefined> {
    const page = this.kept(session);
    const before = page.holder;
    page.holder = replica;
    this.shrink();
    return Promise.resolve(before);
  }

  holder(session: string): Promise<string | undefined> {
    return Promise.resolve(this.page(session)?.holder);
  }

  touch(sessions: readonly string[]): Promise<void> {
    for (const session of sessions) if (this.page(session)) this.kept(session);
    return Promise.resolve();
  }

  forget(session: string): Promise<void> {
    this.pages.delete(session);
    return Promise.resolve();
  }

  private addNow(session: string, uri: string, { maxPerSession, maxSessions, share }: BookLimits): BookEntry {
    const page = this.page(session);
    if (page?.uris.has(uri)) {
      this.kept(session);
      return 'present';
    }
    if (!page?.uris.size && this.subscribed(maxSessions) >= maxSessions) return 'full';
    if (!page?.uris.size && share && this.subscribed(share.maxSessions, share.owner) >= share.maxSessions)
      return 'owner-full';
    if (page && page.uris.size >= maxPerSession) return 'session-full';
    const kept = this.kept(session);
    kept.owner = share?.owner;
    kept.uris.add(uri);
    return 'added';
  }

  /** Sessions with entries; looks for expired ones only when it matters. */
  private subscribed(enough: number, owner?: string): number {
    const isCounted = (page: Page) => page.uris.size > 0 && (owner === undefined || page.owner === owner);
    const count = () => [...this.pages.values()].filter(isCounted).length;
    if (this.pages.size < enough || count() < enough) return 0;
    for (const session of this.pages.keys()) this.page(session);
    return count();
  }

  private page(session: string): Page | undefined {
    const page = this.pages.get(session);
    if (page && page.until <= this.now()) {
      this.pages.delete(session);
      return undefined;
    }
    return page;
  }

  /** Re-inserting keeps the map in order of last use. */
  private kept(session: string): Page {
    const page = this.page(session) ?? {
      uris: new Set<string>(),
      holder: undefined,
      owner: undefined,
      until: 0,
    };
    page.until = this.now() + this.ttl;
    this.pages.delete(session);
    this.pages.set(session, page);
    return page;
  }

  /** Streams without subscriptions are forgotten first used first; entries never are. */
  private shrink(): void {
    if (this.pages.size <= this.maxHeld) return;
    for (const [session, { uris }] of this.pages) {
      if (uris.size > 0) continue;
      this.pages.delete(session);
      return;
    }
  }
}
