import type { ServerResponse } from 'node:http';

/** Milliseconds a client may leave written bytes unread before its stream is dropped. */
const STALL = 30_000;
/** Milliseconds of silence after which the peer of an open stream is probed. */
const PROBE = 30_000;

/** Server-sent events on one HTTP response. A client that does not read loses the stream, not our memory. */
export class EventStream {
  private stalledSince = 0;

  /** @param maxBuffered bytes that may wait for the client before more makes it lose the stream */
  constructor(
    private readonly response: ServerResponse,
    private readonly maxBuffered: number,
  ) {}

  get isOpen(): boolean {
    return this.response.headersSent && !this.response.writableEnded && !this.response.destroyed;
  }

  /** Sends the headers at once, so that the client knows it is served. */
  open(headers?: Readonly<Record<string, string>>): void {
    const { response } = this;
    if (response.headersSent || response.destroyed) return;
    const fields = [
      ['Content-Type', 'text/event-stream'],
      ['Cache-Control', 'no-cache'],
      ['Connection', 'keep-alive'],
      ['X-Accel-Buffering', 'no'],
      ...Object.entries(headers ?? {}),
    ];
    response.writeHead(200, fields.flat());
    response.flushHeaders();
    response.socket?.setKeepAlive(true, PROBE);
  }

  /** @returns false when the stream is over, or was dropped just now */
  write(frame: string | Uint8Array): boolean {
    if (!this.isOpen) return false;
    if (this.response.writableLength > this.maxBuffered) {
      this.response.destroy();
      return false;
    }
    this.response.write(frame);
    return true;
  }

  /** To be called now and then: drops the stream of a client that stopped reading. */
  checkStall(now: number): void {
    if (this.response.writableLength === 0) this.stalledSince = 0;
    else if (this.stalledSince === 0) this.stalledSince = now;
    else if (now - this.stalledSince > STALL) this.response.destroy();
  }

  /** What is written still arrives, if the client reads it within reasonable time. */
  end(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    response.end();
    if (!response.writableFinished) response.setTimeout(STALL, () => response.destroy());
  }
}
