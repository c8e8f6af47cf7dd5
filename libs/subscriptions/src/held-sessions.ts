import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { callerKey, type Agent } from '#core';
import { SessionStreams, SharedState, type SubscriptionStore } from '#state';
import { faultLine, type WarningLog } from '#dispatcher';
import type { WatchHandle } from './watcher.js';
import { WatchService, type WatchedResource } from './watching.js';

/** One subscribe request in progress. */
export interface Attempt {
  /** The session ended meanwhile: the code that began the subscription reverts it. */
  left: boolean;
}

/** Subscribe requests in progress by session, so that a session that ends meanwhile leaves nothing behind. */
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

interface Held {
  /** The agent that opened the stream. */
  agent: Agent;
  readonly watchers: Map<string, Promise<WatchHandle>>;
  /** Whether the store says that the stream is on this replica, or did until another one took it. */
  isConfirmed: boolean;
}

/** The sessions whose listening stream is on this replica: their resources are watched here. */
@Injectable()
export class HeldSessions {
  private readonly held = new Map<string, Held>();

  private readonly store: SubscriptionStore;

  constructor(
    private readonly service: WatchService,
    private readonly streams: SessionStreams,
    @Inject(SharedState) { subscriptions: store }: Pick<SharedState, 'subscriptions'>,
    @Optional() private readonly log: WarningLog = new Logger('Subscriptions'),
  ) {
    this.store = store;
  }

  has(session: string): boolean {
    return this.held.has(session);
  }

  get sessions(): string[] {
    return [...this.held.keys()];
  }

  confirm(session: string): void {
    const known = this.held.get(session);
    if (known) known.isConfirmed = true;
  }

  isConfirmed(session: string): boolean {
    return this.held.get(session)?.isConfirmed ?? false;
  }

  isWatching(session: string, uri: string): boolean {
    return this.held.get(session)?.watchers.has(uri) ?? false;
  }

  /** Resources that are watched here, each once for every session. */
  get watches(): number {
    return [...this.held.values()].reduce((sum, { watchers }) => sum + watchers.size, 0);
  }

  findAgent(session: string): Agent | undefined {
    return this.held.get(session)?.agent;
  }

  /** A stream of the session opened here. Resources that another agent watched are not watched with its rights for this one. */
  take(session: string, agent: Agent): void {
    const known = this.held.get(session);
    if (known && callerKey(known.agent) === callerKey(agent)) {
      known.agent = agent;
      return;
    }
    this.release(session);
    this.held.set(session, { agent, watchers: new Map(), isConfirmed: false });
  }

  /** Stops watching the resources of the session here. */
  release(session: string): void {
    const known = this.held.get(session);
    if (!known) return;
    this.held.delete(session);
    for (const opening of known.watchers.values()) close(opening);
  }

  releaseAll(): void {
    for (const session of this.held.keys()) this.release(session);
  }

  /** Idempotent. A session not held here is left alone. @throws as `WatchService.watch` */
  async watch(session: string, resource: WatchedResource, agent: Agent): Promise<void> {
    const held = this.held.get(session);
    if (!held) return;
    const known = held.watchers.get(resource.uri);
    const opening = known ?? this.open(session, held, resource, agent);
    await opening;
  }

  unwatch(session: string, uri: string): void {
    const watchers = this.held.get(session)?.watchers;
    const opening = watchers?.get(uri);
    watchers?.delete(uri);
    if (opening) close(opening);
  }

  notify(session: string, uri: string): void {
    void this.streams.notify(session, {
      method: 'notifications/resources/updated',
      params: { uri },
    });
  }

  private open(session: string, held: Held, resource: WatchedResource, agent: Agent): Promise<WatchHandle> {
    const { uri } = resource;
    const opening = this.service.watch(resource, agent, {
      onUpdated: () => this.notify(session, uri),
      onEnded: () => {
        if (held.watchers.get(uri) === opening) held.watchers.delete(uri);
        this.store.remove(session, uri).catch((error: unknown) => {
          this.log.warn(faultLine('', error));
        });
      },
    });
    held.watchers.set(uri, opening);
    opening.catch(() => {
      if (held.watchers.get(uri) === opening) held.watchers.delete(uri);
    });
    return opening;
  }
}

function close(opening: Promise<WatchHandle>): void {
  opening.then(
    (watcher) => watcher.close(),
    () => undefined,
  );
}
