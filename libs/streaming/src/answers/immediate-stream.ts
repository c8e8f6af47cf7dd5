import type { JsonObject } from '#dispatcher';
import type { Observable, Subscription } from 'rxjs';
import type { Reply } from '../reply.js';
import type { EventStream } from '../sse/event-stream.js';
import { KEEP_ALIVE, messageFrame } from '../sse/frames.js';
import type { KeepAlives } from '../sse/keep-alives.js';
import { type Carrier, jsonOf } from './carrier.js';
import type { Heartbeat } from './heartbeat.js';

export interface ImmediateStreamParts {
  readonly keepAlives: KeepAlives;
  /** Notices about changed lists, as JSON. */
  readonly listChanges: Observable<string>;
  readonly heartbeat: Heartbeat;
}

/** An answer that is a stream from the start, as every answer of the older revisions whose client takes events. */
export class ImmediateStream implements Carrier {
  readonly carriesRequests = true;

  private readonly changes: Subscription;

  constructor(
    private readonly stream: EventStream,
    private readonly parts: ImmediateStreamParts,
  ) {
    this.changes = parts.listChanges.subscribe((json) => this.stream.write(messageFrame(json)));
    parts.keepAlives.add(this);
  }

  beat(now: number): void {
    const beat = this.parts.heartbeat.next(now);
    if (beat !== null)
      this.stream.write(beat === 'comment' ? KEEP_ALIVE : messageFrame(JSON.stringify(beat)));
  }

  send(message: JsonObject): boolean {
    return this.stream.write(messageFrame(JSON.stringify(this.parts.heartbeat.passing(message))));
  }

  finish(answer: Reply): void {
    this.quiet();
    // An answer that has to name a session in its headers comes before there are any.
    this.stream.open(answer.headers);
    this.stream.write(messageFrame(jsonOf(answer)));
    this.stream.end();
  }

  drop(): void {
    this.quiet();
    this.stream.end();
  }

  left(): boolean {
    this.quiet();
    return false;
  }

  private quiet(): void {
    this.parts.keepAlives.remove(this);
    this.changes.unsubscribe();
  }
}
