import { finalize, Observable, Subject } from 'rxjs';
import { type BusMessage, MessageBus } from '../ports/message-bus.js';

/** The listeners of each topic in this process. A topic exists as long as it has a listener. */
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

  publish(topic: string, message: BusMessage): void {
    this.topics.get(topic)?.next(message);
  }

  /** Completes every subscription. */
  close(): void {
    const subjects = Array.from(this.topics.values());
    this.topics.clear();
    for (const subject of subjects) subject.complete();
  }
}

/**
 * A bus within this process: it reaches one process only. Listeners receive a message after `publish` has returned, as over a
 * network.
 */
export class ProcessMessageBus extends MessageBus {
  private readonly listeners = new TopicListeners();

  publish(topic: string, message: BusMessage): Promise<void> {
    const text = JSON.stringify(message);
    setImmediate(() => {
      if (this.listeners.has(topic)) this.listeners.publish(topic, JSON.parse(text) as BusMessage);
    });
    return Promise.resolve();
  }

  messages(topic: string): Observable<BusMessage> {
    return this.listeners.messages(topic);
  }
}
