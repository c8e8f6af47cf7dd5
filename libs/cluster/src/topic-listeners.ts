import { finalize, Observable, Subject } from 'rxjs';
import type { BusMessage } from './message-bus.js';

/** Who listens to which topic in this process. A topic exists as long as somebody listens. */
export class TopicListeners {
  private readonly topics = new Map<string, Subject<BusMessage>>();

  messages(topic: string): Observable<BusMessage> {
    return new Observable((listener) => {
      const subject = this.topics.get(topic) ?? new Subject<BusMessage>();
      this.topics.set(topic, subject);
      return subject
        .pipe(
          finalize(() => {
            if (!subject.observed && this.topics.get(topic) === subject) this.topics.delete(topic);
          }),
        )
        .subscribe(listener);
    });
  }

  has(topic: string): boolean {
    return this.topics.has(topic);
  }

  tell(topic: string, message: BusMessage): void {
    this.topics.get(topic)?.next(message);
  }

  /** Ends every subscription. */
  close(): void {
    const subjects = Array.from(this.topics.values());
    this.topics.clear();
    for (const subject of subjects) subject.complete();
  }
}
