import type { Observable } from 'rxjs';
import { type BusMessage, MessageBus } from '../message-bus.js';
import type { SharedStateLog } from '../shared-state.js';
import { TopicListeners } from '../topic-listeners.js';
import type { RedisConnection } from './redis-connection.js';
import { parseStoredObject } from './stored-json.js';

/** Milliseconds between questions to a subscribed connection: one that died in silence would never hear again. */
const HEARTBEAT = 5_000;

export interface BusConnections {
  readonly commands: RedisConnection;
  /** Its own: a subscribed connection can send nothing else. */
  readonly subscriptions: RedisConnection;
}

/**
 * A bus for all replicas. Every topic travels on one channel, so that a listener hears from the moment it subscribes; a
 * message is `topic`, a line break and JSON, so that a replica without a listener parses nothing.
 */
export class RedisMessageBus extends MessageBus {
  private readonly listeners = new TopicListeners();
  private readonly channel: string;
  private readonly heartbeat: NodeJS.Timeout;

  constructor(
    private readonly connections: BusConnections,
    private readonly log: SharedStateLog,
  ) {
    super();
    this.channel = connections.commands.channel('bus');
    connections.subscriptions.subscribe(this.channel, (text) => this.hear(text));
    this.heartbeat = setInterval(() => void this.feelPulse(), HEARTBEAT);
    this.heartbeat.unref();
  }

  async publish(topic: string, message: BusMessage): Promise<void> {
    if (topic.includes('\n')) throw new TypeError('a topic has one line');
    const text = `${topic}\n${JSON.stringify(message)}`;
    await this.connections.commands.send((redis) => redis.publish(this.channel, text));
  }

  messages(topic: string): Observable<BusMessage> {
    return this.listeners.messages(topic);
  }

  close(): void {
    clearInterval(this.heartbeat);
    this.listeners.close();
  }

  private hear(text: string): void {
    const end = text.indexOf('\n');
    const topic = text.slice(0, Math.max(end, 0));
    if (end >= 0 && !this.listeners.has(topic)) return;
    const message = end < 0 ? undefined : parseStoredObject(text.slice(end + 1));
    if (message) this.listeners.tell(topic, message);
    else this.log.warn('[Redis] a message on the bus was no message of ours');
  }

  private async feelPulse(): Promise<void> {
    const { subscriptions } = this.connections;
    // Without an answer `send` gives the connection up, and it opens again.
    if (subscriptions.isUsable) await subscriptions.send((redis) => redis.ping()).catch(() => undefined);
  }
}
