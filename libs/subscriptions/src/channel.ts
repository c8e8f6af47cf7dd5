import {
  catchError,
  EMPTY,
  firstValueFrom,
  type Observable,
  ReplaySubject,
  type Subscription,
  timeout,
} from 'rxjs';
import { type RowView, type SourceNews, SourceRefused } from '#data';
import { ChangedRows } from './changed-rows.js';
import type { Turns } from './turns.js';
import { ViewWatch } from './view-watch.js';

/** Somebody to whom news of a channel matter. */
export interface ChannelMember {
  /** There is news. Not called again until `settled`. */
  stir(): void;
  /** The source tells nothing more. */
  cutOff(): void;
}

/** Milliseconds a source may take to begin. */
const PATIENCE = 10_000;

/** One watch of a source, and everybody it serves. */
export class Channel {
  readonly changes = new ChangedRows();
  private readonly members = new Set<ChannelMember>();
  /** Members that know everything there is: news need not reach for the others, however many there are. */
  private readonly settledMembers = new Set<ChannelMember>();
  private readonly views = new Map<string, { readonly watch: ViewWatch; users: number }>();
  private readonly listening = new ReplaySubject<void>(1);
  private readonly subscription: Subscription;

  /** @param onEmpty called once the last member has left, or the source is lost */
  constructor(
    readonly key: string,
    news: Observable<SourceNews>,
    private readonly turns: Turns,
    private readonly onEmpty: () => void,
  ) {
    this.subscription = news
      .pipe(
        catchError((fault: unknown) => {
          this.lost(fault);
          return EMPTY;
        }),
      )
      .subscribe((piece) => this.hear(piece));
  }

  /** Resolves once nothing is missed. @throws SourceRefused; TimeoutError for a source that does not begin */
  ready(): Promise<void> {
    return firstValueFrom(this.listening.pipe(timeout({ first: PATIENCE })));
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

  /** The member knows what there is up to now; it is stirred by the next news. */
  settled(member: ChannelMember): void {
    if (this.members.has(member)) this.settledMembers.add(member);
  }

  /** The watch that all members with this view share, until each has let it go. */
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

  private hear(news: SourceNews): void {
    if (news.kind === 'listening') {
      this.listening.next();
      return;
    }
    if (news.kind === 'gap') this.changes.addGap();
    else this.changes.add(news);
    if (this.settledMembers.size === 0) return;
    const stirred = [...this.settledMembers];
    this.settledMembers.clear();
    for (const member of stirred) member.stir();
  }

  private lost(fault: unknown): void {
    this.listening.error(fault instanceof SourceRefused ? fault : new SourceRefused(fault));
    this.onEmpty();
    for (const member of this.members) member.cutOff();
  }
}
