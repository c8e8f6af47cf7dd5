import { randomUUID } from 'node:crypto';
import type { JsonObject } from '#dispatcher';
import type { Observable, Subscription } from 'rxjs';
import type { Reply } from '../reply.js';
import type { EventStream } from '../sse/event-stream.js';
import { KEEP_ALIVE, messageFrame, notification } from '../sse/frames.js';
import type { KeepAlives } from '../sse/keep-alives.js';
import { type Carrier, jsonOf } from './carrier.js';

const PROGRESS = 'notifications/progress';

export interface ImmediateStreamParts {
  readonly keepAlives: KeepAlives;
  /** Notices about changed lists, as JSON. */
  readonly listChanges: Observable<string>;
  /** Revisions up to 2025-06-18 hear a progress of its own that counts seconds; later ones a comment. */
  readonly heartbeat: 'progress' | 'comment';
}

/** An answer that is a stream from the start, as every answer of the older revisions whose client takes events. */
export class ImmediateStream implements Carrier {
  readonly carriesRequests = true;

  private readonly changes: Subscription;
  private readonly begun = performance.now();
  private token: string | null = null;
  private lastBeat = '';

  constructor(
    private readonly stream: EventStream,
    private readonly parts: ImmediateStreamParts,
  ) {
    this.changes = parts.listChanges.subscribe((json) => this.stream.write(messageFrame(json)));
    parts.keepAlives.add(this);
  }

  beat(now: number): void {
    this.stream.checkStall(now);
    if (this.parts.heartbeat === 'comment') {
      this.stream.write(KEEP_ALIVE);
      return;
    }
    const elapsed = ((now - this.begun) / 1000).toFixed(1);
    // A token's progress rises: beats closer than its resolution would repeat themselves.
    if (elapsed === this.lastBeat) return;
    this.lastBeat = elapsed;
    // Seconds and units of work are different scales, so they never share a token.
    this.token ??= `parley:heartbeat:${randomUUID()}`;
    const params = { progressToken: this.token, progress: Number(elapsed) };
    this.stream.write(messageFrame(JSON.stringify(notification(PROGRESS, params))));
  }

  send(message: JsonObject): boolean {
    if (message.method === PROGRESS && this.parts.heartbeat === 'progress')
      this.parts.keepAlives.remove(this);
    return this.stream.write(messageFrame(JSON.stringify(message)));
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
