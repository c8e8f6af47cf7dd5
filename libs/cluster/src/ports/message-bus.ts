import { finalize, Observable, Subject } from 'rxjs';

/** What travels between replicas: plain JSON. */
export type BusMessage = Readonly<Record<string, unknown>>;

/** Publishes to every replica at once. Nothing is stored: a replica that does not listen at that moment misses it. */
export abstract class MessageBus {
  /**
   * Reaches every listener on every replica, this one included.
   * @throws SharedStateUnavailable when the replicas cannot be reached
   */
  abstract publish(topic: string, message: BusMessage): Promise<void>;
  /** Hot; every subscription receives all messages of the topic from then on. It survives an outage of the shared state. */
  abstract messages(topic: string): Observable<BusMessage>;
}

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

  /** Ends every subscription. */
  close(): void {
    const subjects = Array.from(this.topics.values());
    this.topics.clear();
    for (const subject of subjects) subject.complete();
  }
}

/** A bus within this process: it reaches one process only. Listeners receive after `publish` has returned, as over a network. */
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
