import { MessageBus, type BusMessage, ProcessMessageBus } from '#state';

/** What becomes of a message: as Redis loses those of an outage, and a node that takes over may deliver one again. */
export const DELIVERIES = ['once', 'never', 'twice'] as const;

/** The bus of one process, whose messages are lost or doubled as a test says. */
export class LossyBus extends MessageBus {
  delivery: (typeof DELIVERIES)[number] = 'once';
  private readonly bus = new ProcessMessageBus();

  async publish(topic: string, message: BusMessage): Promise<void> {
    const times = { once: 1, never: 0, twice: 2 }[this.delivery];
    for (let time = 0; time < times; time += 1) await this.bus.publish(topic, message);
  }

  messages(topic: string): ReturnType<MessageBus['messages']> {
    return this.bus.messages(topic);
  }
}
