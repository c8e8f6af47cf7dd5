import type { Observable } from 'rxjs';
import { type BusMessage, MessageBus } from './message-bus.js';
import { TopicListeners } from './topic-listeners.js';

/** A bus within this process: it tells one process only. Listeners hear after `publish` has returned, as over a network. */
export class ProcessMessageBus extends MessageBus {
  private readonly listeners = new TopicListeners();

  publish(topic: string, message: BusMessage): Promise<void> {
    const text = JSON.stringify(message);
    setImmediate(() => {
      if (this.listeners.has(topic)) this.listeners.tell(topic, JSON.parse(text) as BusMessage);
    });
    return Promise.resolve();
  }

  messages(topic: string): Observable<BusMessage> {
    return this.listeners.messages(topic);
  }
}
