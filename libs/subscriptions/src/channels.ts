import {
  catchError,
  EMPTY,
  firstValueFrom,
  type Observable,
  ReplaySubject,
  type Subscription,
  timeout,
  TimeoutError,
} from 'rxjs';
import { type Agent, describeError, FairQueue, type Refusal, refusals, Refused } from '#core';
import { type ChangeSource, type RowView, type SourceEvent, SourceRefused, StoreError } from '#data';
import { ChangedRows, ViewWatch } from './view-watch.js';

/** No source can ever report changes of the class to this agent. @param cause for the log only */
export function watchDenied(cause?: string): Refusal {
  const refusal = refusals.accessDenied('subscription', 'Changes of this class cannot be told to this agent');
  return cause === undefined ? refusal : { ...refusal, cause };
}

/** A later attempt may succeed. @param cause for the log only */
export function watchUnavailable(cause?: string): Refusal {
  return refusals.parseError('changes cannot be told at the moment', cause);
}

export interface ChannelMember {
  /** There are changes. Not called again until `settle`. */
  wake(): void;
  /** The source reports no more changes. */
  cutOff(): void;
}

/** Milliseconds in which a source must begin. */
const OPEN_TIMEOUT = 10_000;

/** One watch of a source, and its members. */
export class Channel {
  readonly changes = new ChangedRows();
  private readonly members = new Set<ChannelMember>();
  /** Members that have no unread changes: each notification reaches only them, whatever the number of the others. */
  private readonly settledMembers = new Set<ChannelMember>();
  private readonly views = new Map<string, { readonly watch: ViewWatch; users: number }>();
  private readonly listening = new ReplaySubject<void>(1);
  private readonly subscription: Subscription;

  /** @param onEmpty called once the last member has left, or the source is lost */
  constructor(
    readonly key: string,
    news: Observable<SourceEvent>,
    private readonly turns: Pick<FairQueue, 'run'>,
    private readonly onEmpty: () => void,
  ) {
    this.subscription = news
      .pipe(
        catchError((error: unknown) => {
          this.fail(error);
          return EMPTY;
        }),
      )
      .subscribe((piece) => this.handle(piece));
  }

  /** Resolves once every further change is reported. @throws SourceRefused; TimeoutError for a source that does not begin */
  ready(): Promise<void> {
    return firstValueFrom(this.listening.pipe(timeout({ first: OPEN_TIMEOUT })));
  }

  join(member: ChannelMember): void {
    this.members.add(member);
    this.settledMembers.add(member);
  }

  leave(member: ChannelMember): void {
    this.settledMembers.delete(member);
    if (!this.members.delete(member) || this.members.size > 0) return;
    this.subscription.unsubscribe();
    this.onEmpty();
  }

  /** The member has processed all changes up to now; the next change notifies it again. */
  settle(member: ChannelMember): void {
    if (this.members.has(member)) this.settledMembers.add(member);
  }

  /** The watch that all members with this view share, until each has released it. */
  useView(view: RowView, since: number): ViewWatch {
    const known = this.views.get(view.key);
    if (known) {
      known.users += 1;
      return known.watch;
    }
    const watch = new ViewWatch(this.changes, this.turns, since);
    this.views.set(view.key, { watch, users: 1 });
    return watch;
  }

  dropView(key: string): void {
    const known = this.views.get(key);
    if (!known) return;
    known.users -= 1;
    if (known.users === 0) this.views.delete(key);
  }

  private handle(news: SourceEvent): void {
    if (news.kind === 'listening') {
      this.listening.next();
      return;
    }
    if (news.kind === 'gap') this.changes.addGap();
    else this.changes.add(news);
    if (this.settledMembers.size === 0) return;
    const woken = [...this.settledMembers];
    this.settledMembers.clear();
    for (const member of woken) member.wake();
  }

  private fail(error: unknown): void {
    this.listening.error(error instanceof SourceRefused ? error : new SourceRefused(error));
    this.onEmpty();
    for (const member of this.members) member.cutOff();
  }
}

/**
 * Database queries that run at a time, for all subscriptions together. Principals take turns, and one place is left to others. A
 * query waits as long as it takes: it is one for each view.
 */
const TURNS = { atOnce: 8, perKey: 7, waitingPerKey: Infinity, timeout: 2 ** 31 - 1 };

const NO_SOURCE = 'no source of changes can carry the rights of this agent';
const UNKNOWN_SOURCE = 'the database has not said yet whether it reports changes';

/** The channels that are open, and the choice of a source for each. */
export class Channels {
  private readonly open = new Map<string, Channel>();
  private readonly turns = new FairQueue(TURNS);

  /** @param sources in the order in which they are preferred */
  constructor(private readonly sources: () => readonly ChangeSource[]) {}

  get available(): boolean {
    return this.sources().some((source) => source.available === true);
  }

  /** @throws Refused `access_denied` when no source may ever report to this agent, `parse_error` when that is not known yet */
  async assertCarried(agent: Agent, view: RowView): Promise<void> {
    await this.probe(agent, view);
    if (this.candidates(agent, view).length === 0) throw this.createRefused(agent, view);
  }

  /** Keys of the channels that could serve this view for this agent, the preferred one first. */
  keysFor(agent: Agent, view: RowView): string[] {
    return this.candidates(agent, view).map(({ key }) => key);
  }

  /**
   * Joins the first channel that accepts the member; it receives changes when this resolves.
   * @throws Refused `access_denied` when none may, `parse_error` when one might at another time
   */
  async join(agent: Agent, view: RowView, member: ChannelMember): Promise<Channel> {
    await this.probe(agent, view);
    let passing: unknown;
    let final: unknown;
    for (const { source, key } of this.candidates(agent, view)) {
      const channel = this.at(key, source, agent, view);
      channel.join(member);
      try {
        await channel.ready();
        return channel;
      } catch (error) {
        channel.leave(member);
        if (isForNow(error)) passing = error;
        else final = error;
      }
    }
    if (passing !== undefined) throw new Refused(watchUnavailable(readCause(passing)));
    throw final === undefined ? this.createRefused(agent, view) : new Refused(watchDenied(readCause(final)));
  }

  /** Of an agent to which no source that can be used now reports. */
  private createRefused(agent: Agent, view: RowView): Refused {
    const isUnknown = this.sources().some(
      (source) => source.available === null && source.channel(agent, view) !== null,
    );
    return new Refused(isUnknown ? watchUnavailable(UNKNOWN_SOURCE) : watchDenied(NO_SOURCE));
  }

  /** Waits for the sources of which it is not known yet whether they report changes, as after a start without their database. */
  private async probe(agent: Agent, view: RowView): Promise<void> {
    const unknown = this.sources().filter(
      (source) => source.available === null && source.channel(agent, view) !== null,
    );
    await Promise.all(unknown.map((source) => source.probe()));
  }

  private candidates(agent: Agent, view: RowView): { source: ChangeSource; key: string }[] {
    return this.sources().flatMap((source) => {
      const key = source.available ? source.channel(agent, view) : null;
      return key === null ? [] : [{ source, key }];
    });
  }

  private at(key: string, source: ChangeSource, agent: Agent, view: RowView): Channel {
    const known = this.open.get(key);
    if (known) return known;
    // A source may fail before the channel exists.
    const made: { channel?: Channel } = {};
    const channel = new Channel(key, source.news(agent, view), this.turns, () => {
      if (this.open.get(key) === made.channel) this.open.delete(key);
    });
    made.channel = channel;
    this.open.set(key, channel);
    return channel;
  }
}

function isForNow(error: unknown): boolean {
  if (error instanceof TimeoutError) return true;
  return (
    error instanceof SourceRefused && error.cause instanceof StoreError && error.cause.code !== 'unsupported'
  );
}

function readCause(error: unknown): string {
  const cause = error instanceof SourceRefused ? error.cause : error;
  return cause instanceof Error ? describeError(cause) : String(cause);
}
