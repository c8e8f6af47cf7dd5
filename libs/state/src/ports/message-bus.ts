import type { Observable } from 'rxjs';

/** A message between replicas: plain JSON. */
export type BusMessage = Readonly<Record<string, unknown>>;

/**
 * Publishes to every replica at once. Nothing is stored: a replica that is not subscribed at that moment misses the message.
 */
export abstract class MessageBus {
  /**
   * Reaches every listener on every replica, this one included.
   * @throws SharedStateUnavailable when the replicas cannot be reached
   */
  abstract publish(topic: string, message: BusMessage): Promise<void>;
  /** Hot; every subscription receives all messages of the topic from then on. It survives an outage of the shared state. */
  abstract messages(topic: string): Observable<BusMessage>;
}
