import type { ServerResponse } from 'node:http';
import type { Observable, Subscription } from 'rxjs';
import { type JsonObject, member } from '#core';
import type { UnreadAnswers } from '../http/client-memory.js';
import type { Reply } from '../message.js';

/** One event name for everything: clients drop events of names they do not know. */
export function messageFrame(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}

/** A message with an id, from which its client can resume. */
export function formatIdentifiedFrame(id: string, json: string): string {
  return `id: ${id}\nevent: message\ndata: ${json}\n\n`;
}

/** Sends a client an id to resume from before there is any message; `retry` in milliseconds. */
export function formatPrimingFrame(id: string, retry: number): string {
  return `id: ${id}\nretry: ${retry}\ndata: \n\n`;
}

export const CONNECTED_COMMENT = ': connected\n\n';
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
const COALESCE_INTERVAL = 20;

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
    this.timer = setTimeout(() => this.beat(), Math.max(wait, COALESCE_INTERVAL));
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
const PROBE_INTERVAL = 30_000;

/**
 * Server-sent events on one HTTP response. A client that does not read loses the stream: when too many bytes wait for it,
 * and, as for every reader, when it accepts nothing for too long.
 */
export class EventStream {
  /** A part of the stream was accepted: less of it waits. */
  private readonly accept = (): void => this.unread.wrote(this.response);

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
    response.socket?.setKeepAlive(true, PROBE_INTERVAL);
  }

  /** @returns false when the stream has ended or was just closed */
  write(frame: string | Uint8Array): boolean {
    if (!this.isOpen) return false;
    if (this.response.writableLength > this.maxBuffered) {
      this.response.destroy();
      return false;
    }
    this.response.write(frame, this.accept);
    this.unread.wrote(this.response);
    return this.isOpen;
  }

  /** Resolves once the client has accepted what waits for it, or is gone. */
  async accepted(): Promise<void> {
    const { response } = this;
    if (!response.writableNeedDrain || response.destroyed) return;
    await new Promise<void>((resolve) => {
      const settle = () => {
        response.off('drain', settle).off('close', settle);
        resolve();
      };
      response.on('drain', settle).on('close', settle);
    });
  }

  /** Written data still arrives, if the client reads it. */
  end(): void {
    const { response } = this;
    if (response.writableEnded || response.destroyed) return;
    response.end();
    this.unread.wrote(response);
  }
}

const PROGRESS = 'notifications/progress';
/**
 * The fraction of a tool's own unit that a second counts for: the progress of a heartbeat stays below what a tool reports.
 */
const SECOND = 1e-6;

/** The token under which a client requested progress. */
export function readProgressToken(params: unknown): string | number | undefined {
  const token = member(member(params, '_meta'), 'progressToken');
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/** The next message while the call reports nothing: a notification or a comment. */
export type Beat = JsonObject | 'comment';

/**
 * The heartbeats of one call, until its tool reports for the first time. A client that sent a token receives them under it,
 * in every revision, so that it does not treat a slow and silent tool as lost. Without a token there is no progress, only comments:
 * clients take progress under a token that they did not send for an error.
 */
export class Heartbeat {
  private readonly begun = performance.now();
  private last = -Infinity;
  private reported = false;

  /** @param token the client's */
  constructor(private readonly token: string | number | undefined) {}

  /** Whether a client expects them under its own token. */
  get isAskedFor(): boolean {
    return this.token !== undefined;
  }

  /** @param now milliseconds of the monotonic clock */
  next(now: number): Beat {
    if (this.reported || this.token === undefined) return 'comment';
    const seconds = ((now - this.begun) / 1000).toFixed(1);
    const progress = Number((Number(seconds) * SECOND).toFixed(7));
    // A token's progress increases: heartbeats closer than its resolution would repeat themselves.
    if (progress <= this.last) return 'comment';
    this.last = progress;
    return notification(PROGRESS, {
      progressToken: this.token,
      progress,
      message: `running for ${seconds} s`,
    });
  }

  /**
   * Called for every message beside the answer: the first report of the tool ends the heartbeats. A report that is not above
   * the last heartbeat, such as a report of 0, is raised above it, because the progress of a token must increase.
   */
  passOn(message: JsonObject): JsonObject {
    if (message.method !== PROGRESS) return message;
    this.reported = true;
    const progress = member(message.params, 'progress');
    if (this.token === undefined || typeof progress !== 'number') return message;
    if (progress > this.last) {
      this.last = progress;
      return message;
    }
    // Doubles cannot represent such a small increment beside a large number; there the message is sent unchanged.
    this.last = Math.max(Number((this.last + SECOND / 10).toFixed(7)), this.last);
    return { ...message, params: { ...(message.params as JsonObject), progress: this.last } };
  }
}

/** The stream of an answer, open already or opened by the first message before the answer. */
export interface ResponseStream {
  /** Whether requests to the client may go beside the answer. */
  readonly carriesRequests: boolean;
  /** Sends a message beside the answer. @returns false when no stream carried it */
  send(message: JsonObject): boolean;
  /** Sends the answer; nothing follows it. */
  finish(answer: Reply): void;
  /** The call was cancelled by its client in a revision that then expects no answer. */
  drop(): void;
  /** The client disconnected. @returns whether the call continues without it */
  leave(): boolean;
  /** Ends the stream while the call continues; only where the client can reconnect for the rest. */
  readonly endStream?: () => void;
}

/** The JSON text of an answer. */
export function formatJson({ body, tail }: Reply): string {
  return tail ? body + tail.toString('utf8') : body;
}

export interface ImmediateStreamOptions {
  readonly keepAlives: KeepAlives;
  /** Notices about changed lists, as JSON. */
  readonly listChanges: Observable<string>;
  readonly heartbeat: Heartbeat;
}

/** An answer that is a stream from the start, as every answer of the older revisions whose client accepts events. */
export class ImmediateStream implements ResponseStream {
  readonly carriesRequests = true;

  private readonly changes: Subscription;

  constructor(
    private readonly stream: EventStream,
    private readonly dependencies: ImmediateStreamOptions,
  ) {
    this.changes = dependencies.listChanges.subscribe((json) => this.stream.write(messageFrame(json)));
    dependencies.keepAlives.add(this);
  }

  beat(now: number): void {
    const beat = this.dependencies.heartbeat.next(now);
    this.stream.write(beat === 'comment' ? KEEP_ALIVE : messageFrame(JSON.stringify(beat)));
  }

  send(message: JsonObject): boolean {
    return this.stream.write(messageFrame(JSON.stringify(this.dependencies.heartbeat.passOn(message))));
  }

  finish(answer: Reply): void {
    this.quiet();
    // An answer that must name a session in its headers is sent before there are any heartbeats.
    this.stream.open(answer.headers);
    this.stream.write(messageFrame(formatJson(answer)));
    this.stream.end();
  }

  drop(): void {
    this.quiet();
    this.stream.end();
  }

  leave(): boolean {
    this.quiet();
    return false;
  }

  private quiet(): void {
    this.dependencies.keepAlives.remove(this);
    this.changes.unsubscribe();
  }
}

/** An answer that becomes a stream with the first message before it: the form of the stateless revisions. */
export class LateStream implements ResponseStream {
  /** In these revisions client requests are part of the result. */
  readonly carriesRequests = false;
  private streaming = false;

  /** @param whole sends the answer as one JSON body. @param heartbeat of the call */
  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly whole: (answer: Reply) => void,
    private readonly heartbeat: Heartbeat,
  ) {
    // A client that requested progress receives heartbeats of a silent tool too: the first opens the stream.
    if (heartbeat.isAskedFor) keepAlives.add(this);
  }

  beat(now: number): void {
    const beat = this.heartbeat.next(now);
    if (beat === 'comment') {
      if (this.streaming) this.stream.write(KEEP_ALIVE);
      return;
    }
    this.begin();
    this.stream.write(messageFrame(JSON.stringify(beat)));
  }

  send(message: JsonObject): boolean {
    this.begin();
    return this.stream.write(messageFrame(JSON.stringify(this.heartbeat.passOn(message))));
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
    this.stream.write(messageFrame(formatJson(answer)));
    this.stream.end();
  }

  drop(): void {
    this.keepAlives.remove(this);
    this.stream.end();
  }

  leave(): boolean {
    this.keepAlives.remove(this);
    return false;
  }
}
