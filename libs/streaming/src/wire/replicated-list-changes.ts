import { type Observable, Subject } from 'rxjs';
import { ListChanges, type ListKind } from '#dispatcher';
import { notification } from '../sse/frames.js';
import type { ListeningStreams } from './listening-streams.js';
import { type ReplicaSignals, text } from './replica-signals.js';

/** Lists whose changes are told. */
export type ChangingList = Extract<ListKind, 'tools' | 'prompts'>;

const NOTICES: Readonly<Record<ChangingList, string>> = {
  tools: JSON.stringify(notification('notifications/tools/list_changed')),
  prompts: JSON.stringify(notification('notifications/prompts/list_changed')),
};

/** Tells clients of every replica that a list is no longer what they read. */
export class ReplicatedListChanges extends ListChanges {
  readonly kinds: ReadonlySet<ListKind> = new Set<ChangingList>(['tools', 'prompts']);
  private readonly happened = new Subject<ChangingList>();
  private readonly told = new Subject<string>();
  private readonly changed = new Subject<ChangingList>();

  /** The lists themselves, as they change on whichever replica. */
  readonly lists: Observable<ChangingList> = this.changed.asObservable();

  /** Of this replica and of the others. */
  readonly changes: Observable<ListKind> = this.happened.asObservable();
  /** The notices for streams of running calls, as JSON. */
  readonly onCallStreams: Observable<string> = this.told.asObservable();

  constructor(
    private readonly signals: ReplicaSignals,
    private readonly listening: ListeningStreams,
  ) {
    super();
    signals.heard('changed').subscribe((message) => {
      const list = text(message, 'list');
      if (list !== undefined && Object.hasOwn(NOTICES, list)) this.tell(list as ChangingList);
    });
  }

  /** Tells of each change from now on: what happens while the service starts concerns nobody. */
  follow(changes: Observable<ChangingList>): void {
    changes.subscribe((list) => {
      this.tell(list);
      void this.signals.tell('changed', { list });
    });
  }

  private tell(list: ChangingList): void {
    this.happened.next(list);
    this.listening.deliverToAll(NOTICES[list]);
    this.told.next(NOTICES[list]);
    this.changed.next(list);
  }
}
