import { type Observable, Subject } from 'rxjs';
import { notification } from '../sse/frames.js';
import type { ListeningStreams } from './listening-streams.js';
import { type ReplicaSignals, text } from './replica-signals.js';

/** Lists that may change while the service runs. */
export type ChangingList = 'tools' | 'prompts';

const NOTICES: Readonly<Record<ChangingList, string>> = {
  tools: JSON.stringify(notification('notifications/tools/list_changed')),
  prompts: JSON.stringify(notification('notifications/prompts/list_changed')),
};

/** Tells clients of every replica that a list is no longer what they read. */
export class ListChanges {
  private readonly told = new Subject<string>();

  /** The notices for streams of running calls, as JSON. */
  readonly onCallStreams: Observable<string> = this.told.asObservable();

  constructor(
    private readonly signals: ReplicaSignals,
    private readonly listening: ListeningStreams,
  ) {
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
    this.listening.deliverToAll(NOTICES[list]);
    this.told.next(NOTICES[list]);
  }
}
