import { EMPTY, NEVER, type Observable } from 'rxjs';
import { type Agent, type CallContext, Unauthorized } from '#agent';
import type { RowViews, ChangeSource } from '#data';
import type { WarningLog } from '#dispatcher';
import { Channels } from './channels.js';
import { Debouncer } from './debouncer.js';
import { renewed, watchProvided } from './provided-watch.js';
import { type WatchedResource, watchedRows } from './resource-address.js';
import { Watcher, type WatcherEvents, type WatcherParts, type WatchHandle } from './watcher.js';

export interface WatchDeskParts {
  readonly views: RowViews;
  /** In the order in which they are preferred. */
  readonly sources: readonly ChangeSource[];
  /** The changes of a resource that is not made of rows, as this caller may hear them. Default: there are none. */
  readonly provided?: (uri: string, context: CallContext) => Observable<unknown> | undefined;
  /**
   * The agent as it would be admitted now; null when it would not. Asked whenever rights are: watching outlives the
   * policy it began under. Default: agents do not change.
   */
  readonly asNow?: (agent: Agent) => Agent | null;
  /** Emits when agents may have changed. Default: never. */
  readonly renewals?: Observable<unknown>;
  readonly log?: WarningLog | undefined;
}

/** Where watching begins: everything that watchers of this replica share. */
export class WatchDesk {
  private readonly parts: WatcherParts;
  private readonly channels: Channels;
  private readonly provided: NonNullable<WatchDeskParts['provided']>;
  private readonly asNow: NonNullable<WatchDeskParts['asNow']>;
  private readonly renewals: Observable<unknown>;
  private readonly closing = new AbortController();

  /** @param debounce milliseconds */
  constructor(
    { views, sources, provided, asNow, renewals, log }: WatchDeskParts,
    private readonly debounce: number,
  ) {
    this.provided = provided ?? (() => undefined);
    this.asNow = asNow ?? ((agent) => agent);
    this.renewals = renewals ?? NEVER;
    this.channels = new Channels(sources);
    const debouncer = new Debouncer<Watcher>(debounce, (watcher) => void watcher.settle());
    this.parts = { views, channels: this.channels, debouncer, perChange: debounce <= 0, log };
  }

  /** Whether anything could be watched at this moment. */
  get available(): boolean {
    return this.channels.available;
  }

  /**
   * Whether the agent may watch the resource: judged as reading it is, before anything is opened.
   * @throws ProtocolFault for what is no such resource; Refused and Unauthorized as reading would
   */
  async admit(uri: string, agent: Agent): Promise<WatchedResource> {
    const resource = this.resource(uri, agent);
    if ('changes' in resource) return resource;
    const view = await this.parts.views.open(this.contextOf(agent), resource.className, resource.operation);
    this.channels.assertCarried(agent, view);
    return resource;
  }

  /** What an address names for the agent, before its rights are asked. @throws ProtocolFault for what is no such resource */
  resource(uri: string, agent: Agent): WatchedResource {
    const first = this.provided(uri, this.contextOf(agent));
    if (!first) return watchedRows(uri);
    const again = () => this.provided(uri, this.contextOf(agent)) ?? EMPTY;
    return { uri, changes: renewed(first, this.renewals, again) };
  }

  /** @throws as `admit` */
  async watch(resource: WatchedResource, agent: Agent, events: WatcherEvents): Promise<WatchHandle> {
    if ('changes' in resource) return watchProvided(resource, this.debounce, events);
    return Watcher.open(resource, () => this.contextOf(agent), this.parts, events);
  }

  /** Ends the questions that run. */
  close(): void {
    this.closing.abort('server_shutdown');
  }

  /** @throws Unauthorized for an agent that would not be admitted any more */
  private contextOf(given: Agent): CallContext {
    const agent = this.asNow(given);
    if (!agent) throw new Unauthorized('the agent is no longer configured');
    return { agent, signal: this.closing.signal, progress: () => undefined };
  }
}
