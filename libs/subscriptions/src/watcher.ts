import { type McpRequest, Refused, Unauthorized } from '#core';
import type { RowView, RowViews, WatchedOperation } from '#data';
import { faultLine, type WarningLog } from '#dispatcher';
import type { Channel, ChannelMember, Channels } from './channels.js';
import type { ViewWatch } from './view-watch.js';

/** A resource that consists of the rows of a class. */
export interface WatchedRows {
  /** As the client wrote it: the address in its updates. */
  readonly uri: string;
  readonly className: string;
  readonly operation: WatchedOperation;
}

/**
 * Fires once per interval and key: the first call starts it, later calls are absorbed until it fires. All keys share one
 * timer, because they share one interval.
 */
export class Debouncer<T> {
  /** When each pending key fires, in order. */
  private readonly armed = new Map<T, number>();
  private timer: NodeJS.Timeout | null = null;

  /** @param interval milliseconds; 0 or less fires on every touch */
  constructor(
    private readonly interval: number,
    private readonly fire: (thing: T) => void,
  ) {}

  touch(thing: T): void {
    if (this.interval <= 0) {
      this.fire(thing);
      return;
    }
    if (this.armed.has(thing)) return;
    this.armed.set(thing, performance.now() + this.interval);
    this.timer ??= this.wait(this.interval);
  }

  /** A cancelled key does not fire. */
  cancel(thing: T): void {
    if (!this.armed.delete(thing) || this.armed.size > 0 || !this.timer) return;
    clearTimeout(this.timer);
    this.timer = null;
  }

  private wait(milliseconds: number): NodeJS.Timeout {
    return setTimeout(() => this.tick(), Math.max(milliseconds, 1)).unref();
  }

  private tick(): void {
    this.timer = null;
    const now = performance.now();
    const due: T[] = [];
    for (const [thing, when] of this.armed) {
      // Timers may fire slightly early; keys that are due within that time fire with them.
      if (when > now + 1) break;
      due.push(thing);
    }
    for (const thing of due) this.armed.delete(thing);
    for (const thing of due) this.fire(thing);
    const next = this.armed.values().next().value;
    if (next !== undefined) this.timer ??= this.wait(next - now);
  }
}

export interface WatcherDependencies {
  readonly views: RowViews;
  readonly channels: Channels;
  readonly debouncer: Debouncer<Watcher>;
  /** Updates are not combined: one for each change, where changes can be distinguished. */
  readonly perChange: boolean;
  /** Receives internal errors. */
  readonly log?: WarningLog | undefined;
}

export interface WatcherEvents {
  /** The resource has changed for the agent. */
  readonly onUpdated: (uri: string) => void;
  /** The agent may not watch it any more, or its rights cannot be checked. */
  readonly onEnded: (uri: string) => void;
}

/** A watch that continues until it is closed. */
export interface WatchHandle {
  close(): void;
}

/** Errors that do not concern the agent's rights: the query is repeated. Any other error ends the watch. */
const PASSING: ReadonlySet<string> = new Set(['parse_error', 'timeout', 'cancelled']);

/** Consecutive repetitions of a query before the next change. */
const MAX_ATTEMPTS = 5;

/** Milliseconds before a watch without a source looks for one again; doubles up to the longest. */
const FIRST_DELAY = 200;
const LONGEST_DELAY = 10_000;

interface Watching {
  readonly channel: Channel;
  readonly view: RowView;
  /** Absent where every change is visible. */
  readonly watch: ViewWatch | null;
}

/**
 * Watches one resource on behalf of one agent, whose rights are checked again before each update. A change of rights alone is
 * no event.
 */
export class Watcher implements ChannelMember, WatchHandle {
  private now: Watching | null = null;
  /** The number of the last change that was checked. */
  private seen = 0;
  private failures = 0;
  private retry: NodeJS.Timeout | null = null;
  private settling = false;
  private woken = false;
  private closed = false;

  private constructor(
    private readonly resource: WatchedRows,
    /** The agent with its current rights. @throws Unauthorized */
    private readonly context: () => McpRequest,
    private readonly dependencies: WatcherDependencies,
    private readonly events: WatcherEvents,
  ) {}

  /** Every change after it resolves is reported. @throws Refused and Unauthorized as a read of the resource would */
  static async open(
    resource: WatchedRows,
    context: () => McpRequest,
    dependencies: WatcherDependencies,
    events: WatcherEvents,
  ): Promise<Watcher> {
    const watcher = new Watcher(resource, context, dependencies, events);
    try {
      await watcher.watch(await watcher.view());
      return watcher;
    } catch (error) {
      watcher.close();
      throw error;
    }
  }

  close(): void {
    this.closed = true;
    if (this.retry) clearTimeout(this.retry);
    this.dependencies.debouncer.cancel(this);
    this.release();
  }

  wake(): void {
    if (!this.closed) this.dependencies.debouncer.touch(this);
  }

  /** Its source is lost: another one may replace it. */
  cutOff(): void {
    if (this.closed || !this.now) return;
    this.release();
    void this.settle();
  }

  /** Checks the changes since the last time, and sends one update if any is visible. */
  async settle(): Promise<void> {
    if (this.settling) {
      this.woken = true;
      return;
    }
    this.settling = true;
    try {
      do {
        this.woken = false;
        await this.judge();
      } while (this.woken && !this.closed);
    } finally {
      this.settling = false;
    }
  }

  private async view(): Promise<RowView> {
    const { className, operation } = this.resource;
    return this.dependencies.views.open(this.context(), className, operation);
  }

  private async watch(view: RowView): Promise<void> {
    const channel = await this.dependencies.channels.join(this.context().agent, view, this);
    if (this.closed) {
      channel.leave(this);
      return;
    }
    this.seen = channel.changes.last;
    const watch = view.everything ? null : channel.useView(view, this.seen);
    this.now = { channel, view, watch };
    await watch?.measure(view, this.context().agent.principal);
  }

  private release(): void {
    if (!this.now) return;
    const { channel, view, watch } = this.now;
    this.now = null;
    if (watch) channel.dropView(view.key);
    channel.leave(this);
  }

  private async judge(): Promise<void> {
    try {
      const view = await this.view();
      if (this.closed) return;
      const updates = await this.updates(view);
      for (let sent = 0; sent < updates && !this.closed; sent += 1) this.events.onUpdated(this.resource.uri);
      this.failures = 0;
      this.rest();
    } catch (error) {
      if (this.closed) return;
      if (isPassing(error)) this.askAgain();
      else this.end(error);
    }
  }

  /** How many updates the client gets for the changes since the last time. */
  private async updates(view: RowView): Promise<number> {
    const watching = this.now;
    if (
      !watching ||
      !this.dependencies.channels.keysFor(this.context().agent, view).includes(watching.channel.key)
    ) {
      // Other rights need another watch, which starts at its own position. Without the old watch changes may have been
      // missed.
      this.release();
      await this.watch(view);
      return watching ? 0 : 1;
    }
    const { channel } = watching;
    const watch = this.watchFor(view, watching);
    if (watch) {
      const { shown, judged } = await watch.shows(view, this.seen, this.context().agent.principal);
      this.seen = judged;
      return shown ? 1 : 0;
    }
    const changes = channel.changes.last - this.seen;
    this.seen = channel.changes.last;
    return this.dependencies.perChange ? changes : Math.min(changes, 1);
  }

  /** The watch for the view as it is now: rights may have changed since. */
  private watchFor(view: RowView, { channel, view: before, watch }: Watching): ViewWatch | null {
    if (view.key === before.key) return watch;
    const next = view.everything ? null : channel.useView(view, this.seen);
    if (watch) channel.dropView(before.key);
    this.now = { channel, view, watch: next };
    return next;
  }

  /** Changes that arrived during the check are checked after another wait. */
  private rest(): void {
    if (!this.now) return;
    const { channel } = this.now;
    if (channel.changes.last > this.seen) this.wake();
    else channel.settle(this);
  }

  private askAgain(): void {
    this.failures += 1;
    if (!this.now) this.lookAgain();
    else if (this.failures < MAX_ATTEMPTS) this.wake();
    else this.now.channel.settle(this);
  }

  /** Without a source no change wakes it, so it looks for one until there is one. */
  private lookAgain(): void {
    const delay = Math.min(FIRST_DELAY * 2 ** Math.min(this.failures - 1, 10), LONGEST_DELAY);
    if (this.retry) clearTimeout(this.retry);
    this.retry = setTimeout(() => void this.settle(), delay).unref();
  }

  private end(error: unknown): void {
    if (!(error instanceof Refused) && !(error instanceof Unauthorized)) {
      this.dependencies.log?.warn(faultLine('', error));
    }
    this.close();
    this.events.onEnded(this.resource.uri);
  }
}

/** Whether a refusal does not mean that the agent lacks a right. */
export function isPassing(error: unknown): boolean {
  return error instanceof Refused && PASSING.has(error.refusal.code);
}
