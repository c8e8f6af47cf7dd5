import type { Subscription } from 'rxjs';
import { faultLine, type StreamedResult, type WarningLog } from '#dispatcher';
import { internalError } from '../http/refusals.js';
import { resultReply } from '../reply.js';
import type { OpenStream } from '../open-streams.js';
import type { EventStream } from '../sse/event-stream.js';
import { KEEP_ALIVE, messageFrame, notification } from '../sse/frames.js';
import type { KeepAlives } from '../sse/keep-alives.js';

/** An answer that tells its client of things as they happen, until one of the two ends it. */
export class OpenAnswer implements OpenStream {
  private source: Subscription | null = null;
  private over = false;

  constructor(
    private readonly id: unknown,
    private readonly result: StreamedResult,
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly log: WarningLog,
    private readonly onEnd: () => void,
  ) {}

  begin(): void {
    this.stream.open();
    this.keepAlives.add(this);
    const source = this.result.messages.subscribe({
      next: ({ method, params }) =>
        this.stream.write(messageFrame(JSON.stringify(notification(method, params)))),
      complete: () => this.shutDown(),
      error: (fault: unknown) => {
        this.log.warn(faultLine('[McpEdge] a stream failed:', fault));
        this.close(internalError(this.id).body);
      },
    });
    // It may be over before the subscription is in hand.
    if (this.over) source.unsubscribe();
    else this.source = source;
  }

  beat(): void {
    this.stream.write(KEEP_ALIVE);
  }

  shutDown(): void {
    this.close(resultReply(this.id, { result: this.result.final() }).body);
  }

  /** The client went away, and with it whatever fed the stream. */
  left(): void {
    this.close(null);
  }

  private close(last: string | null): void {
    if (this.over) return;
    this.over = true;
    this.keepAlives.remove(this);
    this.source?.unsubscribe();
    if (last !== null) this.stream.write(messageFrame(last));
    this.stream.end();
    this.onEnd();
  }
}
