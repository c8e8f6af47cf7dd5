import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import {
  asyncScheduler,
  defer,
  dematerialize,
  EMPTY,
  filter,
  map,
  materialize,
  merge,
  NEVER,
  Observable,
  retry,
  startWith,
  switchMap,
  throttleTime,
  timer,
} from 'rxjs';
import { type Agent, CurrentAgents, McpRequest, Unauthorized, SERVER_SHUTDOWN } from '#core';
import {
  type ChangeFeed,
  ChangeSets,
  ChangeSource,
  GovernedRecordsSource,
  GovernedViews,
  type SourceEvent,
  SourceRefused,
  StoreError,
  type WatchedOperation,
} from '#data';
import { invalidParams, readChangeSetUri, ResourceRegistry, type WarningLog } from '#dispatcher';
import { readTenantText } from '#policy';
import { SharedState, SuspendedAgents } from '#state';
import { ToolRunner } from '#tools';
import { Channels } from './channels.js';
import { SubscriptionLimits } from './subscription-limits.js';
import { watchSet } from './watched-set.js';
import {
  Debouncer,
  type WatchedRows,
  Watcher,
  type WatcherDependencies,
  type WatcherEvents,
  type WatchHandle,
} from './watcher.js';

/** The sources of row changes, the preferred source first. The adapters of the stores provide them. */
export abstract class ChangeSources {
  abstract readonly preferred: readonly ChangeSource[];
  abstract close(): void;
}

/** Milliseconds before a lost feed is watched again; doubles up to the longest. */
const FIRST_DELAY = 200;
const LONGEST_DELAY = 10_000;

/**
 * Changes of the database itself, for every row of the class: the view of each watcher decides which of them are reported.
 * One watch serves all watchers, whatever their rights.
 */
export class FeedSource extends ChangeSource {
  /**
   * @param serves whether the feed is that of the database that holds a class. Default: of every class
   * @param database its name. Default: that of the service
   * @param perTenant whether each tenant has a database of its own. Default false
   * @param moves emits when other classes may be served. Default never
   */
  constructor(
    private readonly feed: ChangeFeed,
    private readonly serves: (className: string) => boolean = () => true,
    private readonly database: string | null = null,
    private readonly perTenant = false,
    private readonly moves: Observable<unknown> = NEVER,
  ) {
    super();
  }

  get available(): boolean | null {
    return this.feed.available;
  }

  override probe(): Promise<void> {
    return this.feed.probe();
  }

  channel(agent: Pick<Agent, 'tenantId'>, { className }: { readonly className: string }): string | null {
    if (!this.serves(className)) return null;
    const tenant = this.findTenant(agent);
    if (this.perTenant && tenant === null) return null;
    // A class that moves to another database is another channel: its watchers leave the old one.
    return [
      'feed',
      ...(this.database === null ? [] : [this.database]),
      ...(tenant === null ? [] : [tenant]),
      className,
    ].join(' ');
  }

  private findTenant({ tenantId }: Pick<Agent, 'tenantId'>): string | null {
    return this.perTenant ? readTenantText(tenantId) : null;
  }

  /** A lost feed is watched again, and the time in between is reported as a gap. A feed that never began is refused. */
  news(
    agent: Pick<Agent, 'tenantId'>,
    { className }: { readonly className: string },
  ): Observable<SourceEvent> {
    let begun = false;
    const watch = new Observable<SourceEvent>((subscriber) => {
      const changes = this.feed.changes(className, this.findTenant(agent)).subscribe({
        next: ({ objectId, kind }) =>
          subscriber.next({ kind: 'change', objectId, created: kind === 'create' }),
        error: (error: unknown) => subscriber.error(error),
      });
      this.feed.waitForListening().then(
        () => {
          const kind = begun ? 'gap' : 'listening';
          begun = true;
          subscriber.next({ kind });
        },
        (error: unknown) => subscriber.error(error),
      );
      return changes;
    });
    const reported = watch.pipe(
      retry({
        resetOnSuccess: true,
        delay: (error: unknown, attempt) => {
          const hopeless = error instanceof StoreError && error.code === 'unsupported';
          if (hopeless || !begun) throw new SourceRefused(error);
          return timer(Math.min(FIRST_DELAY * 2 ** Math.min(attempt - 1, 10), LONGEST_DELAY));
        },
      }),
    );
    // Each watcher looks where its class is now.
    const left = this.moves.pipe(
      filter(() => !this.serves(className)),
      map((): SourceEvent => ({ kind: 'gap' })),
    );
    return merge(reported, left);
  }
}

/** A resource whose provider reports its changes for one agent. */
export interface ProvidedResource {
  readonly uri: string;
  readonly changes: Observable<unknown>;
}

/**
 * The changes that the provider reports, subscribed again at each renewal; it ends when the provider's stream ends, or when
 * `again` throws.
 */
export function renewOn(
  first: Observable<unknown>,
  renewals: Observable<unknown>,
  again: () => Observable<unknown>,
): Observable<unknown> {
  return renewals.pipe(
    map(() => defer(again)),
    startWith(first),
    switchMap((changes) => changes.pipe(materialize())),
    dematerialize(),
  );
}

/** @param debounce milliseconds; changes within it are reported once, at its end */
export function watchProvided(
  { uri, changes }: ProvidedResource,
  debounce: number,
  events: WatcherEvents,
): WatchHandle {
  const gathered =
    debounce > 0
      ? changes.pipe(throttleTime(debounce, asyncScheduler, { leading: false, trailing: true }))
      : changes;
  const subscription = gathered.subscribe({
    next: () => events.onUpdated(uri),
    error: () => events.onEnded(uri),
    complete: () => events.onEnded(uri),
  });
  return { close: () => subscription.unsubscribe() };
}

/** A resource that can be subscribed to. */
export type WatchedResource = WatchedRows | ProvidedResource;

const RESOURCE = /^parse:\/\/([A-Za-z_][A-Za-z0-9_]*)\/(schema|count|samples)$/;

const OPERATIONS: Readonly<Record<string, WatchedOperation>> = { count: 'count', samples: 'find' };

/** @throws ProtocolError for anything but `parse://<Class>/count` and `parse://<Class>/samples` */
function parseWatchedRows(uri: string): WatchedRows {
  const [, className, kind] = RESOURCE.exec(uri) ?? [];
  if (className === undefined || kind === undefined) {
    throw invalidParams(`Invalid resource URI: ${uri}. Expected parse://<Class>/{count|samples}.`);
  }
  const operation = OPERATIONS[kind];
  if (!operation) {
    throw invalidParams(
      `Resource kind '${kind}' is not subscribable: only count and samples are LiveQuery-backed. A change of a schema is no row event.`,
    );
  }
  return { uri, className, operation };
}

/**
 * The entry point of subscriptions: the state that all watchers of this replica share. Rights are those of the agent as it
 * would be admitted now, because a watch may outlive the policy under which it began.
 */
@Injectable()
export class WatchService {
  private readonly dependencies: WatcherDependencies;
  private readonly channels: Channels;
  private readonly debounce: number;
  private readonly closing = new AbortController();

  constructor(
    private readonly records: GovernedRecordsSource,
    sources: ChangeSources,
    private readonly resources: ResourceRegistry,
    private readonly agents: CurrentAgents,
    @Inject(SuspendedAgents) private readonly suspended: Pick<SuspendedAgents, 'isSuspended' | 'changes'>,
    { debounce }: SubscriptionLimits,
    @Inject(SharedState) private readonly shared: Pick<SharedState, 'bus'>,
    @Inject(ChangeSets) private readonly sets: Pick<ChangeSets, 'find'>,
    @Inject(ToolRunner) private readonly runner: Pick<ToolRunner, 'permits'>,
    @Optional() log: WarningLog = new Logger('Subscriptions'),
  ) {
    this.debounce = debounce;
    this.channels = new Channels(() => sources.preferred);
    const debouncer = new Debouncer<Watcher>(debounce, (watcher) => void watcher.settle());
    const views = new GovernedViews(records);
    this.dependencies = { views, channels: this.channels, debouncer, perChange: debounce <= 0, log };
  }

  /** Whether any resource could be watched now. */
  get available(): boolean {
    return this.channels.available;
  }

  /**
   * Whether the agent may watch the resource: checked as a read of it, before a watch is opened.
   * @throws ProtocolError for an address that is no such resource; Refused and Unauthorized as a read would
   */
  async admit(uri: string, agent: Agent): Promise<WatchedResource> {
    const resource = this.resource(uri, agent);
    if ('changes' in resource) return resource;
    const view = await this.dependencies.views.open(
      this.createContext(agent),
      resource.className,
      resource.operation,
    );
    await this.channels.assertCarried(agent, view);
    return resource;
  }

  /**
   * The resource of an address for the agent, before its rights are checked. @throws ProtocolError for an address that is no
   * such resource
   */
  resource(uri: string, agent: Agent): WatchedResource {
    const first = this.findProvided(uri, this.createContext(agent));
    if (!first) return parseWatchedRows(uri);
    const again = () => this.findProvided(uri, this.createContext(agent)) ?? EMPTY;
    return { uri, changes: renewOn(first, merge(this.agents.changes, this.suspended.changes), again) };
  }

  /** @throws as `admit` */
  async watch(resource: WatchedResource, agent: Agent, events: WatcherEvents): Promise<WatchHandle> {
    if ('changes' in resource) return watchProvided(resource, this.debounce, events);
    return Watcher.open(resource, () => this.createContext(agent), this.dependencies, events);
  }

  /** Aborts running queries. */
  close(): void {
    this.closing.abort(SERVER_SHUTDOWN);
  }

  /** The changes of a resource that does not consist of rows, as this caller may receive them. */
  private findProvided(uri: string, context: McpRequest): Observable<unknown> | undefined {
    const set = readChangeSetUri(uri);
    // Without the tool that reads it there is no such resource.
    if (set !== null)
      return this.runner.permits(context, 'show_changes', { change_set: set })
        ? watchSet(set, context.agent, this.sets, this.shared)
        : EMPTY;
    const provider = this.resources.findProvider(uri);
    return provider?.changes?.(uri, Object.assign(context, { records: this.records.for(context) }));
  }

  /** @throws Unauthorized for an agent that would not be admitted any more */
  private createContext(given: Agent): McpRequest {
    const agent = this.agents.asNow(given);
    if (!agent) throw new Unauthorized('the agent is no longer configured');
    if (this.suspended.isSuspended(agent)) throw new Unauthorized('the agent is suspended');
    return new McpRequest(agent, { signal: this.closing.signal });
  }
}
