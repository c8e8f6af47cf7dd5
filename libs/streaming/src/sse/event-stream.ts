import type { ServerResponse } from 'node:http';
import type { UnreadAnswers } from '../unread-answers.js';

/** Milliseconds of silence after which the peer of an open stream is probed. */
const PROBE = 30_000;

/**
 * Server-sent events on one HTTP response. A client that does not read loses the stream, not our memory: when too much waits
 * for it, and, as every reader does, when it takes nothing for too long.
 */
export class EventStream {
  /** @param maxBuffered bytes that may wait for the client before more makes it lose the stream */
  constructor(
    private readonly response: ServerResponse,
    private readonly maxBuffered: number,
    private readonly unread: Pick<UnreadAnswers, 'wrote'>,
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
    this.unread.wrote(this.response);
    return this.isOpen;
  }

  /** What is written still arrives, if the client reads it. */
  end(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    response.end();
    this.unread.wrote(response);
  }
}
