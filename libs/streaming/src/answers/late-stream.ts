import type { JsonObject } from '#dispatcher';
import type { Reply } from '../reply.js';
import type { EventStream } from '../sse/event-stream.js';
import { KEEP_ALIVE, messageFrame } from '../sse/frames.js';
import type { KeepAlives } from '../sse/keep-alives.js';
import { type Carrier, jsonOf } from './carrier.js';
import type { Heartbeat } from './heartbeat.js';

/** An answer that becomes a stream only when something has to be said before it: the form of the stateless revisions. */
export class LateStream implements Carrier {
  /** These revisions ask their client by the result of the call. */
  readonly carriesRequests = false;
  private streaming = false;

  /** @param whole sends the answer as one JSON body. @param heartbeat of the call */
  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly whole: (answer: Reply) => void,
    private readonly heartbeat: Heartbeat,
  ) {
    // Who asked for progress hears of a silent tool as well: then that is what has to be said first.
    if (heartbeat.isAskedFor) keepAlives.add(this);
  }

  beat(now: number): void {
    const beat = this.heartbeat.next(now);
    if (beat === null || beat === 'comment') {
      if (this.streaming) this.stream.write(KEEP_ALIVE);
      return;
    }
    this.begin();
    this.stream.write(messageFrame(JSON.stringify(beat)));
  }

  send(message: JsonObject): boolean {
    this.begin();
    return this.stream.write(messageFrame(JSON.stringify(this.heartbeat.passing(message))));
  }

  private begin(): void {
    if (this.streaming) return;
    this.streaming = true;
    this.stream.open();
    this.keepAlives.add(this);
  }

  finish(answer: Reply): void {
    this.keepAlives.remove(this);
    if (!this.streaming) return this.whole(answer);
    this.stream.write(messageFrame(jsonOf(answer)));
    this.stream.end();
  }

  drop(): void {
    this.keepAlives.remove(this);
    this.stream.end();
  }

  left(): boolean {
    this.keepAlives.remove(this);
    return false;
  }
}
