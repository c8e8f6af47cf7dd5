import type { Observable } from 'rxjs';

/** What travels between replicas: plain JSON. */
export type BusMessage = Readonly<Record<string, unknown>>;

/** Tells every replica at once. Nothing is stored: who does not listen at that moment does not hear. */
export abstract class MessageBus {
  /**
   * Reaches every listener on every replica, this one included.
   * @throws SharedStateUnavailable when the replicas cannot be reached
   */
  abstract publish(topic: string, message: BusMessage): Promise<void>;
  /** Hot; every subscription hears all messages of the topic from then on. It survives an outage of the shared state. */
  abstract messages(topic: string): Observable<BusMessage>;
}
