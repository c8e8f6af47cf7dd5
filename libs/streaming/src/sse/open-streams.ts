import type { Subscription } from 'rxjs';
import { type Agent, callerKey } from '#core';
import type { Authenticator, CredentialSource } from '#auth';
import { faultLine, type StreamedResult, type WarningLog } from '#dispatcher';
import { internalError } from '../http/refusals.js';
import { resultReply } from '../message.js';
import type { Listener } from '../sessions/listening-streams.js';
import {
  CONNECTED_COMMENT,
  type EventStream,
  KEEP_ALIVE,
  type KeepAlives,
  messageFrame,
  notification,
} from './event-stream.js';

/** An answer that is longer than a call: a stream without an end of its own, or a file that is sent as fast as it is read. */
export interface OpenStream {
  /** Ends the stream so that its client reconnects, here or elsewhere. */
  shutDown(): void;
  /** Ends by itself, as a running call does, and gets the same grace period. Default false. */
  readonly finite?: boolean;
}

/** The caller that opened a stream, and its credentials. */
export interface StreamOwner {
  readonly agent: Agent;
  readonly credentials: CredentialSource;
}

/** Credentials that are checked together. */
const AT_ONCE = 16;

/**
 * The streams that are open here. The credentials that opened a stream must stay valid while it is open: they are checked at
 * intervals, and a stream that could not be opened any more, for whatever reason, ends. One timer serves all streams, and it
 * runs only while there are streams to check.
 */
export class OpenStreams {
  private readonly owners = new Map<OpenStream, StreamOwner>();
  private timer: NodeJS.Timeout | undefined;
  private checking = false;

  /** @param interval milliseconds between two checks of the credentials */
  constructor(
    private readonly authenticator: Authenticator,
    private readonly interval: number,
    private readonly log: WarningLog,
  ) {}

  add(stream: OpenStream, owner: StreamOwner): void {
    this.owners.set(stream, owner);
    this.timer ??= setInterval(() => void this.checkAll(), this.interval).unref();
  }

  remove(stream: OpenStream): void {
    this.owners.delete(stream);
    if (this.owners.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  shutDown(which: (stream: OpenStream, agent: Agent) => boolean): void {
    for (const [stream, { agent }] of this.owners) if (which(stream, agent)) stream.shutDown();
  }

  /** One check at a time: a slow authenticator delays the next. */
  private async checkAll(): Promise<void> {
    if (this.checking) return;
    this.checking = true;
    try {
      const due = [...this.owners];
      for (let at = 0; at < due.length; at += AT_ONCE)
        await Promise.all(due.slice(at, at + AT_ONCE).map((entry) => this.check(...entry)));
    } finally {
      this.checking = false;
    }
  }

  private async check(stream: OpenStream, { agent, credentials }: StreamOwner): Promise<void> {
    try {
      const admitted = await this.authenticator.authenticate(credentials);
      if (callerKey(admitted) === callerKey(agent)) return;
    } catch (error) {
      this.log.warn(faultLine('a stream ends with its credentials:', error));
    }
    if (this.owners.has(stream)) stream.shutDown();
  }
}

/** The stream on which a session receives messages that belong to none of its requests. */
export class ListeningStream implements Listener {
  sentBack = false;

  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
  ) {}

  open(): void {
    this.stream.open();
    this.stream.write(CONNECTED_COMMENT);
    this.keepAlives.add(this);
  }

  beat(): void {
    this.stream.write(KEEP_ALIVE);
  }

  deliver(json: string): boolean {
    return this.stream.write(messageFrame(json));
  }

  end(): void {
    this.close();
    this.stream.end();
  }

  shutDown(): void {
    this.sentBack = true;
    this.end();
  }

  close(): void {
    this.keepAlives.remove(this);
  }
}

/** An answer that sends notifications as they happen, until the client or the server ends it. */
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
      error: (error: unknown) => {
        this.log.warn(faultLine('a stream failed:', error));
        this.close(internalError(this.id).body);
      },
    });
    // The stream may have ended before the subscription is assigned.
    if (this.over) source.unsubscribe();
    else this.source = source;
  }

  beat(): void {
    this.stream.write(KEEP_ALIVE);
  }

  shutDown(): void {
    this.close(resultReply(this.id, { result: this.result.final() }).body);
  }

  /** The client disconnected, and the source of the stream ends with it. */
  leave(): void {
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
