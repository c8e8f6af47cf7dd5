import type { LoggedFrame } from '#cluster';
import { isJsonObject } from '#dispatcher';
import type { OpenStream } from '../open-streams.js';
import type { EventStream } from '../sse/event-stream.js';
import { identifiedFrame, KEEP_ALIVE, messageFrame } from '../sse/frames.js';
import type { KeepAlives } from '../sse/keep-alives.js';
import type { FollowedStream, Resumption, StreamPlace } from './resumption.js';

/** Keep-alives after which the log is read although nobody announced anything: its writer may be gone. */
const BEATS_BETWEEN_LOOKS = 8;

/** An answer by JSON-RPC: it has no method, and ends its stream. */
function isAnswer(json: string): boolean {
  const message: unknown = JSON.parse(json);
  return isJsonObject(message) && !('method' in message);
}

/** The rest of a logged stream, told to a client that came back for it. */
export class ReturnedStream implements FollowedStream, OpenStream {
  private reading = false;
  private again = false;
  private entry: string;
  private beats = 0;

  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly resumption: Resumption,
    private readonly place: StreamPlace & { readonly id: string },
  ) {
    this.entry = place.entry;
  }

  /** @param missed what was read of the log already */
  begin(missed: readonly LoggedFrame[]): void {
    this.keepAlives.add(this);
    this.tell(missed);
    this.resumption.follow(this.place.stream, this);
    this.follow();
  }

  beat(): void {
    this.stream.write(KEEP_ALIVE);
    this.beats += 1;
    if (this.beats % BEATS_BETWEEN_LOOKS === 0) this.follow();
  }

  follow(): void {
    this.again = true;
    if (!this.reading) void this.read();
  }

  hearBeat(json: string): void {
    this.stream.write(messageFrame(json));
  }

  end(): void {
    this.keepAlives.remove(this);
    this.resumption.endFollowing(this.place.stream, this);
    this.stream.end();
  }

  shutDown(): void {
    this.end();
  }

  private async read(): Promise<void> {
    this.reading = true;
    while (this.again && this.stream.isOpen) {
      this.again = false;
      try {
        const missed = await this.resumption.log.after(this.place.stream, this.entry);
        if (missed) this.tell(missed);
        // Cancelled, or forgotten: nothing more will come.
        else this.end();
      } catch {
        // An outage: the next announcement or keep-alive tries again.
      }
    }
    this.reading = false;
  }

  private tell(frames: readonly LoggedFrame[]): void {
    for (const { entry, frame } of frames) {
      if (!this.stream.isOpen) return;
      this.entry = entry;
      if (frame === '') continue;
      this.stream.write(identifiedFrame(`${this.place.id}.${entry}`, frame));
      if (isAnswer(frame)) this.end();
    }
  }
}
