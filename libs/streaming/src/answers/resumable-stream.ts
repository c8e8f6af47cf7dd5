import type { JsonObject } from '#dispatcher';
import type { Reply } from '../reply.js';
import type { EventStream } from '../sse/event-stream.js';
import { identifiedFrame, KEEP_ALIVE, messageFrame, primingFrame } from '../sse/frames.js';
import type { KeepAlives } from '../sse/keep-alives.js';
import { type Carrier, jsonOf } from './carrier.js';
import type { Heartbeat } from './heartbeat.js';
import type { Resumption, StreamOwner, WrittenStream } from './resumption.js';

/** Milliseconds a client is asked to wait before it comes back. */
const RETRY = 500;
/** Messages that may wait for the log; more of them are dropped, the answer never is. */
const MAX_PENDING = 256;

/** An answer whose stream is logged, so that its client may lose the connection and come back for the rest. */
export class ResumableStream implements Carrier, WrittenStream {
  readonly carriesRequests = true;

  private readonly id: string;
  private readonly name: string;
  /** Everything is logged and sent in the order in which it was said. */
  private order = Promise.resolve();
  private pending = 0;
  private connected = true;
  private logged = true;

  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly resumption: Resumption,
    private readonly owner: StreamOwner,
    private readonly heartbeat: Heartbeat,
  ) {
    this.id = resumption.newId();
    this.name = resumption.nameOf(owner, this.id);
    resumption.write(this.name, this);
    keepAlives.add(this);
    this.enqueue(async () => {
      const entry = await this.keep('');
      if (entry !== null) this.stream.write(primingFrame(this.eventId(entry), RETRY));
    });
  }

  readonly endStream = (): void => this.enqueue(() => Promise.resolve(this.disconnect()));

  /** Not logged: who comes back hears those that follow. */
  beat(now: number): void {
    const beat = this.heartbeat.next(now);
    const json = beat === null || beat === 'comment' ? null : JSON.stringify(beat);
    if (this.connected) this.stream.write(json === null ? KEEP_ALIVE : messageFrame(json));
    else if (json !== null) this.resumption.tellBeat(this.name, json);
  }

  send(message: JsonObject): boolean {
    if (this.pending >= MAX_PENDING) return false;
    const json = JSON.stringify(this.heartbeat.passing(message));
    this.enqueue(() => this.tell(json));
    return true;
  }

  finish(answer: Reply): void {
    this.enqueue(async () => {
      await this.tell(jsonOf(answer));
      this.close();
    });
  }

  drop(): void {
    this.enqueue(async () => {
      await this.resumption.log.forget(this.name).catch(() => undefined);
      this.close();
      this.resumption.announce(this.name);
    });
  }

  left(): boolean {
    this.disconnect();
    return this.logged;
  }

  handOver(): void {
    this.enqueue(() => {
      this.disconnect();
      this.resumption.announce(this.name);
      return Promise.resolve();
    });
  }

  private enqueue(work: () => Promise<void>): void {
    this.pending += 1;
    this.order = this.order.then(work).finally(() => (this.pending -= 1));
  }

  private async tell(json: string): Promise<void> {
    const entry = await this.keep(json);
    // Without the log a message still reaches a client that is there.
    if (this.connected)
      this.stream.write(entry === null ? messageFrame(json) : identifiedFrame(this.eventId(entry), json));
    else if (entry !== null) this.resumption.announce(this.name);
  }

  private async keep(json: string): Promise<string | null> {
    try {
      return await this.resumption.log.append(this.name, json, this.owner.agent.principal);
    } catch {
      this.logged = false;
      return null;
    }
  }

  private eventId(entry: string): string {
    return `${this.id}.${entry}`;
  }

  private disconnect(): void {
    this.connected = false;
    if (!this.heartbeat.isAskedFor) this.keepAlives.remove(this);
    this.stream.end();
  }

  private close(): void {
    this.disconnect();
    this.keepAlives.remove(this);
    this.resumption.endWriting(this.name);
  }
}
