import type { Listener } from '../wire/listening-streams.js';
import type { EventStream } from './event-stream.js';
import { CONNECTED, KEEP_ALIVE, messageFrame } from './frames.js';
import type { KeepAlives } from './keep-alives.js';

/** The stream on which a session hears what belongs to none of its requests. */
export class ListeningStream implements Listener {
  sentBack = false;

  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
  ) {}

  open(): void {
    this.stream.open();
    this.stream.write(CONNECTED);
    this.keepAlives.add(this);
  }

  beat(): void {
    this.stream.write(KEEP_ALIVE);
  }

  deliver(json: string): boolean {
    return this.stream.write(messageFrame(json));
  }

  end(): void {
    this.close();
    this.stream.end();
  }

  shutDown(): void {
    this.sentBack = true;
    this.end();
  }

  close(): void {
    this.keepAlives.remove(this);
  }
}
