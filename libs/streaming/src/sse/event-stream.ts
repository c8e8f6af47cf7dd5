import type { ServerResponse } from 'node:http';
import type { JsonObject } from '#dispatcher';
import type { UnreadAnswers } from '../http/client-memory.js';

/** One event name for everything: clients drop events of names they do not know. */
export function messageFrame(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}

/** A message with an id, from which its client can resume. */
export function identifiedFrame(id: string, json: string): string {
  return `id: ${id}\nevent: message\ndata: ${json}\n\n`;
}

/** Sends a client an id to resume from before there is any message; `retry` in milliseconds. */
export function primingFrame(id: string, retry: number): string {
  return `id: ${id}\nretry: ${retry}\ndata: \n\n`;
}

export const CONNECTED = ': connected\n\n';
export const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/** A notification as it crosses the wire. */
export function notification(method: string, params?: JsonObject): JsonObject {
  return params === undefined ? { jsonrpc: '2.0', method } : { jsonrpc: '2.0', method, params };
}

/** A callback that runs once per interval. */
export interface Beating {
  /** @param now milliseconds of the monotonic clock */
  beat(now: number): void;
}

/** Heartbeats that are due within this many milliseconds of each other share a timer. */
const COALESCE = 20;

/**
 * Calls every stream once per interval with one timer for all of them. All intervals are alike, so the order of
 * insertion is the order in which they are due.
 */
export class KeepAlives {
  private readonly due = new Map<Beating, number>();
  private timer: NodeJS.Timeout | null = null;

  /** @param interval milliseconds; 0 or less: no callback is called */
  constructor(private readonly interval: number) {}

  /** First called one full interval from now. */
  add(beating: Beating): void {
    if (this.interval <= 0) return;
    this.due.set(beating, performance.now() + this.interval);
    if (this.timer === null) this.arm(this.interval);
  }

  remove(beating: Beating): void {
    this.due.delete(beating);
  }

  private arm(wait: number): void {
    this.timer = setTimeout(() => this.beat(), Math.max(wait, COALESCE));
    this.timer.unref();
  }

  private beat(): void {
    this.timer = null;
    const now = performance.now();
    for (const [beating, due] of this.due) {
      if (due > now) {
        this.arm(due - now);
        return;
      }
      // Behind all others: it is due last.
      this.due.delete(beating);
      this.due.set(beating, now + this.interval);
      beating.beat(now);
    }
  }
}

/** Milliseconds of silence after which the peer of an open stream is probed. */
const PROBE = 30_000;

/**
 * Server-sent events on one HTTP response. A client that does not read loses the stream: when too many bytes wait for it,
 * and, as for every reader, when it accepts nothing for too long.
 */
export class EventStream {
  /** A part of the stream was accepted: less of it waits. */
  private readonly accepted = (): void => this.unread.wrote(this.response);

  /** @param maxBuffered bytes that may wait for the client before the stream is closed */
  constructor(
    private readonly response: ServerResponse,
    private readonly maxBuffered: number,
    private readonly unread: Pick<UnreadAnswers, 'wrote'>,
  ) {}

  get isOpen(): boolean {
    return this.response.headersSent && !this.response.writableEnded && !this.response.destroyed;
  }

  /** Sends the headers at once, so that the client receives them before the first event. */
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

  /** @returns false when the stream has ended or was just closed */
  write(frame: string | Uint8Array): boolean {
    if (!this.isOpen) return false;
    if (this.response.writableLength > this.maxBuffered) {
      this.response.destroy();
      return false;
    }
    this.response.write(frame, this.accepted);
    this.unread.wrote(this.response);
    return this.isOpen;
  }

  /** Written data still arrives, if the client reads it. */
  end(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    response.end();
    this.unread.wrote(response);
  }
}
