import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import {
  defer,
  finalize,
  from,
  lastValueFrom,
  mergeMap,
  Observable,
  type Subscriber,
  type Subscription,
} from 'rxjs';
import { type Agent, Refused, type McpRequest, Unauthorized } from '#core';
import {
  faultLine,
  invalidParams,
  type ListenEvent,
  ProtocolError,
  ResourceSubscriptions,
  type WarningLog,
} from '#dispatcher';
import { SessionStreams, SharedState, SharedStateUnavailable, type SubscriptionStore } from '#state';
import { watchDenied, watchUnavailable } from './channels.js';
import { HeldSessions, RunningAttempts } from './held-sessions.js';
import { type ReplicaMessage, ReplicaMessages, type WatchOutcome } from './replica-messages.js';
import { SubscriptionLimits } from './subscription-limits.js';
import { isPassing, type WatchHandle } from './watcher.js';
import { WatchService } from './watching.js';

/** Milliseconds between the renewals that keep used subscriptions from expiring. */
const TOUCH_INTERVAL = 600_000;
/** Milliseconds between two looks at what is stored: messages of replicas may be lost, and what a watch needs may have been away. */
const LOOK_INTERVAL = 10_000;
/** Sessions that one look asks for, and at once: of others the next looks do. */
const MAX_LOOKS = { total: 500, atOnce: 16 };

/**
 * Subscriptions to resources. A session's subscriptions are stored and watched on the replica that holds its listening
 * stream, whichever replica received them; when the stream opens elsewhere, they move with it. Those of a listening request
 * end with the request.
 */
@Injectable()
export class SubscriptionManager extends ResourceSubscriptions {
  private readonly replica = randomUUID();
  private readonly store: SubscriptionStore;
  private readonly subscribing = new RunningAttempts();
  private readonly subscriptions: Subscription[];
  private readonly timers: NodeJS.Timeout[];
  private looking = false;
  private unseen: string[] = [];
  private listeners = 0;

  constructor(
    private readonly limits: SubscriptionLimits,
    private readonly service: WatchService,
    private readonly held: HeldSessions,
    private readonly replicas: ReplicaMessages,
    streams: SessionStreams,
    @Inject(SharedState) { subscriptions: store }: Pick<SharedState, 'subscriptions'>,
    @Optional() private readonly log: WarningLog = new Logger('Subscriptions'),
  ) {
    super();
    this.store = store;
    this.subscriptions = [
      streams.opened.subscribe(({ session, agent }) => {
        this.held.take(session, agent);
        this.inBackground(this.hold(session, false));
      }),
      streams.left.subscribe((session) => this.inBackground(this.leave(session))),
      // The subscriptions stay stored: the replica that gets the stream continues them.
      streams.returning.subscribe((session) => this.held.release(session)),
      this.replicas.messages.subscribe((message) => this.inBackground(this.handle(message))),
    ];
    this.timers = [
      setInterval(() => this.inBackground(store.touch(this.held.sessions)), TOUCH_INTERVAL).unref(),
      setInterval(() => this.inBackground(this.look()), LOOK_INTERVAL).unref(),
    ];
  }

  /** Resources that this process watches, each once for every client. */
  get watches(): number {
    return this.held.watches + this.listeners;
  }

  get supported(): boolean {
    return this.limits.enabled && this.service.available;
  }

  get maxListened(): number {
    return this.limits.maxPerSession;
  }

  async subscribe(uri: string, { agent, transport: { sessionId } }: McpRequest): Promise<boolean> {
    if (sessionId === undefined || sessionId === '') {
      throw invalidParams('resources/subscribe: no session; initialize first and send its Mcp-Session-Id');
    }
    await this.service.admit(uri, agent);
    const attempt = this.subscribing.begin(sessionId);
    try {
      if (!(await this.enter(sessionId, uri, agent.principal))) return true;
      try {
        await this.watchWhereHeld(sessionId, uri);
      } catch (error) {
        await this.store.remove(sessionId, uri);
        throw error;
      }
      if (!attempt.left) return true;
      this.held.unwatch(sessionId, uri);
      await this.store.remove(sessionId, uri);
      return false;
    } finally {
      this.subscribing.end(sessionId, attempt);
    }
  }

  async unsubscribe(uri: string, { transport: { sessionId } }: McpRequest): Promise<void> {
    if (sessionId === undefined) return;
    this.held.unwatch(sessionId, uri);
    await this.store.remove(sessionId, uri);
    if (!this.held.has(sessionId)) await this.replicas.publish({ do: 'unwatch', session: sessionId, uri });
  }

  listen(uris: readonly string[], { agent }: McpRequest): Observable<ListenEvent> {
    if (this.listeners >= this.limits.maxSessions) throw this.full();
    const some = uris.slice(0, this.maxListened);
    return defer(() => {
      this.listeners += 1;
      return listenTo(this.service, some, agent).pipe(finalize(() => (this.listeners -= 1)));
    });
  }

  /** Ends every watch; stored subscriptions stay for another replica. */
  close(): void {
    for (const timer of this.timers) clearInterval(timer);
    for (const subscription of this.subscriptions) subscription.unsubscribe();
    this.held.releaseAll();
    this.service.close();
  }

  /** @returns false when the session has subscribed to it already. @throws ProtocolError when there is no room */
  private async enter(session: string, uri: string, owner: string): Promise<boolean> {
    const { maxPerSession, maxSessions, maxPerPrincipal } = this.limits;
    const share = { owner, maxSessions: maxPerPrincipal };
    const entry = await this.store.add(session, uri, { maxPerSession, maxSessions, share });
    if (entry === 'full') throw this.full();
    if (entry === 'owner-full') {
      throw invalidParams(
        `Subscription session limit of one caller reached (${maxPerPrincipal}). End sessions that are not used any more.`,
      );
    }
    if (entry === 'session-full') {
      throw invalidParams(
        `Session subscription limit reached (${maxPerSession}). Unsubscribe from a resource before adding another.`,
      );
    }
    return entry === 'added';
  }

  private full(): ProtocolError {
    return invalidParams(
      `Global subscription session limit reached (${this.limits.maxSessions}). Try again later.`,
    );
  }

  /** Without a stream anywhere nothing is watched yet: updates would not be delivered. */
  private async watchWhereHeld(session: string, uri: string): Promise<void> {
    if (this.held.has(session)) return this.watchHere(session, uri);
    const holder = await this.store.holder(session);
    // The stream may have opened here during the query.
    if (this.held.has(session)) return this.watchHere(session, uri);
    if (holder !== undefined && holder !== this.replica) await this.requestFromHolder(session, uri);
  }

  /** Uses the rights of the listener, who receives the updates. */
  private async watchHere(session: string, uri: string): Promise<void> {
    const listener = this.held.findAgent(session);
    if (listener) await this.held.watch(session, this.service.resource(uri, listener), listener);
  }

  /** A holder that does not answer has died: the next holder of the stream finds the subscription in the store. */
  private async requestFromHolder(session: string, uri: string): Promise<void> {
    const outcome = await this.replicas.requestWatch(session, uri);
    if (outcome === null || outcome === 'watching') return;
    throw new Refused(outcome === 'denied' ? watchDenied() : watchUnavailable());
  }

  /**
   * The stream of the session is here: other replicas send its subscriptions here, and release what they watch for it.
   * @param isLate whether it was here before
   */
  private async hold(session: string, isLate: boolean): Promise<void> {
    const before = await this.store.hold(session, this.replica);
    this.held.confirm(session);
    await this.replicas.publish({ do: 'hold', session, replica: this.replica });
    await this.watchStored(session, isLate || before !== undefined);
  }

  /** @param mayHaveMissed whether changes went unseen until now: one update covers them */
  private async watchStored(session: string, mayHaveMissed: boolean): Promise<void> {
    for (const uri of await this.store.of(session)) {
      if (this.held.isWatching(session, uri)) continue;
      const outcome = await this.tryToWatch(session, uri);
      if (outcome === 'denied') await this.store.remove(session, uri);
      if (outcome !== 'watching') continue;
      // It may have been unsubscribed meanwhile.
      if (!(await this.store.of(session)).includes(uri)) this.held.unwatch(session, uri);
      else if (mayHaveMissed) this.held.notify(session, uri);
    }
  }

  /** Compares what is stored of sessions whose streams are here with what is watched for them: of each in its turn. */
  async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      if (this.unseen.length === 0) this.unseen = this.held.sessions;
      const looks = from(this.unseen.splice(0, MAX_LOOKS.total)).pipe(
        mergeMap((session) => this.lookAt(session), MAX_LOOKS.atOnce),
      );
      await lastValueFrom(looks, { defaultValue: undefined });
    } catch (error) {
      // The next look asks again.
      if (!(error instanceof SharedStateUnavailable)) throw error;
    } finally {
      this.looking = false;
    }
  }

  private async lookAt(session: string): Promise<void> {
    if (!this.held.has(session)) return;
    const holder = this.held.isConfirmed(session) ? await this.store.holder(session) : undefined;
    if (holder === undefined) await this.hold(session, true);
    else if (holder === this.replica) await this.watchStored(session, true);
    else this.held.release(session);
  }

  private async leave(session: string): Promise<void> {
    this.subscribing.leave(session);
    this.held.release(session);
    await this.store.forget(session);
  }

  private async handle(message: ReplicaMessage): Promise<void> {
    switch (message.do) {
      case 'hold':
        // Two streams of a session may open at once: the store says which replica was last.
        if (message.replica !== this.replica) await this.lookAt(message.session);
        return;
      case 'unwatch':
        this.held.unwatch(message.session, message.uri);
        return;
      case 'watch': {
        if (!this.held.has(message.session)) return;
        const outcome = await this.tryToWatch(message.session, message.uri);
        await this.replicas.publish({ do: 'watched', ask: message.ask, outcome });
        return;
      }
      case 'watched':
    }
  }

  private async tryToWatch(session: string, uri: string): Promise<WatchOutcome> {
    try {
      await this.watchHere(session, uri);
      return 'watching';
    } catch (error) {
      return isDenial(error) ? 'denied' : 'failed';
    }
  }

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.log.warn(faultLine('', error)));
  }
}

/** The resources of one listening request, watched while the request is open. */
function listenTo(service: WatchService, uris: readonly string[], agent: Agent): Observable<ListenEvent> {
  return new Observable((subscriber) => {
    const request = new Listening(service, agent, subscriber);
    request.open(uris).catch((error: unknown) => subscriber.error(error));
    return () => request.close();
  });
}

class Listening {
  private readonly watchers = new Map<string, WatchHandle>();
  /** Changes that arrived before the client received the list of watched resources. */
  private early: Set<string> | null = new Set();
  private closed = false;

  constructor(
    private readonly service: WatchService,
    private readonly agent: Agent,
    private readonly subscriber: Subscriber<ListenEvent>,
  ) {}

  /** @throws an error that prevents the check, such as an unavailable database */
  async open(uris: readonly string[]): Promise<void> {
    await Promise.all(uris.map((uri) => this.watch(uri)));
    if (this.closed) return;
    this.subscriber.next({ watched: uris.filter((uri) => this.watchers.has(uri)) });
    const { early } = this;
    this.early = null;
    for (const updated of early ?? []) if (this.watchers.has(updated)) this.subscriber.next({ updated });
  }

  close(): void {
    this.closed = true;
    for (const watcher of this.watchers.values()) watcher.close();
    this.watchers.clear();
  }

  private async watch(uri: string): Promise<void> {
    try {
      const resource = await this.service.admit(uri, this.agent);
      const watcher = await this.service.watch(resource, this.agent, {
        onUpdated: () => this.notify(uri),
        onEnded: () => this.watchers.delete(uri),
      });
      if (this.closed) watcher.close();
      else this.watchers.set(uri, watcher);
    } catch (error) {
      if (!isDenial(error)) throw error;
    }
  }

  private notify(uri: string): void {
    if (this.early) this.early.add(uri);
    else this.subscriber.next({ updated: uri });
  }
}

/** Resources that the agent may not watch, or that cannot be watched, are left out without a reason. */
function isDenial(error: unknown): boolean {
  if (error instanceof Refused) return !isPassing(error);
  return error instanceof ProtocolError || error instanceof Unauthorized;
}
