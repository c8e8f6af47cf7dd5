import { Inject, Injectable } from '@nestjs/common';
import { createHash, randomUUID } from 'node:crypto';
import { type Agent, callerKey, CurrentAgents, isJsonObject, type JsonObject } from '#core';
import { LargeReads, type LoggedFrame, StreamLog } from '#state';
import type { Reply } from '../message.js';
import { ReplicaSignals, text } from '../sessions/replica-signals.js';
import {
  type EventStream,
  formatIdentifiedFrame,
  KEEP_ALIVE,
  type KeepAlives,
  messageFrame,
  formatPrimingFrame,
  type ResponseStream,
  type Heartbeat,
  formatJson,
} from './event-stream.js';
import type { OpenStream } from './open-streams.js';

/** A stream that is written here, for a call that runs here. */
export interface WrittenStream {
  /** The client reconnected elsewhere: that connection delivers from now on. */
  handOver(): void;
}

/** A stream whose client reconnected here. */
export interface FollowedStream {
  /** Frames may have been written since. */
  follow(): void;
  /** A heartbeat of a call without progress: sent once, not logged. */
  beatReceived(json: string): void;
}

export interface ResumableOwner {
  readonly session: string;
  readonly agent: Agent;
}

/** The position in a stream after which its client resumes. */
export interface StreamPlace {
  readonly principal: string;
  /** The part of the stream's name that its client sees. */
  readonly id: string;
  readonly stream: string;
  readonly entry: string;
}

const EVENT_ID = /^([0-9a-f-]{36})\.([0-9A-Za-z-]{1,64})$/;

/** Streams that outlive their connection: their writers, their followers, and the signals between them on any replica. */
@Injectable()
export class Resumption {
  private readonly written = new Map<string, WrittenStream>();
  private readonly followed = new Map<string, FollowedStream>();

  constructor(
    readonly log: StreamLog,
    private readonly signals: ReplicaSignals,
    private readonly largeReads: LargeReads,
    @Inject(CurrentAgents) private readonly agents: Pick<CurrentAgents, 'digestRights'>,
  ) {
    signals
      .listenTo('resumed')
      .subscribe((message) => this.written.get(text(message, 'stream') ?? '')?.handOver());
    signals
      .listenTo('logged')
      .subscribe((message) => this.followed.get(text(message, 'stream') ?? '')?.follow());
    signals.listenTo('beat').subscribe((message) => {
      const json = text(message, 'json');
      if (json !== undefined) this.followed.get(text(message, 'stream') ?? '')?.beatReceived(json);
    });
  }

  /** The part of a stream's name that its client sees. */
  newId(): string {
    return randomUUID();
  }

  /**
   * A stream belongs to its session and to the agent that called, with the rights that it had: under other ones the same id names
   * nothing. A session belongs to its principal, who may return with a token of fewer scopes.
   */
  toName({ session, agent }: ResumableOwner, id: string): string {
    const caller = JSON.stringify([callerKey(agent), this.agents.digestRights(agent)]);
    const owner = createHash('sha256').update(caller).digest('base64url');
    return `${session}/${owner}/${id}`;
  }

  /** The position that a `Last-Event-ID` names for its owner; `null` when the id is invalid. */
  findPlace(owner: ResumableOwner, eventId: string): StreamPlace | null {
    const [, id, entry] = EVENT_ID.exec(eventId) ?? [];
    const { principal } = owner.agent;
    return id && entry ? { principal, id, stream: this.toName(owner, id), entry } : null;
  }

  /** The frames after a place; `undefined` when it is unknown. @throws SharedStateUnavailable */
  readAfter({ principal, stream, entry }: StreamPlace): Promise<readonly LoggedFrame[] | undefined> {
    return this.largeReads.run(principal, () => this.log.after(stream, entry));
  }

  write(stream: string, writer: WrittenStream): void {
    this.written.set(stream, writer);
  }

  endWriting(stream: string): void {
    this.written.delete(stream);
  }

  /** The newest follower of a stream replaces all others. */
  follow(stream: string, follower: FollowedStream): void {
    this.followed.set(stream, follower);
    this.written.get(stream)?.handOver();
    void this.signals.publish('resumed', { stream });
  }

  endFollowing(stream: string, follower: FollowedStream): void {
    if (this.followed.get(stream) === follower) this.followed.delete(stream);
  }

  /** A frame was logged while no client was connected here. */
  announce(stream: string): void {
    this.followed.get(stream)?.follow();
    void this.signals.publish('logged', { stream });
  }

  /** A heartbeat of a call whose client lost this connection and may have reconnected, here or elsewhere. */
  publishBeat(stream: string, json: string): void {
    const here = this.followed.get(stream);
    if (here) here.beatReceived(json);
    else void this.signals.publish('beat', { stream, json });
  }
}

/** Milliseconds that a client must wait before it reconnects. */
const RETRY_DELAY = 500;
/** Maximum messages that wait for the log; further ones are dropped, the answer never is. */
const MAX_PENDING = 256;

/** An answer whose stream is logged, so that its client may lose the connection and reconnect for the rest. */
export class ResumableStream implements ResponseStream, WrittenStream {
  readonly carriesRequests = true;

  private readonly id: string;
  private readonly name: string;
  /** Messages are logged and sent in the order in which they were produced. */
  private order = Promise.resolve();
  private pending = 0;
  private connected = true;
  private logged = true;

  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly resumption: Resumption,
    private readonly owner: ResumableOwner,
    private readonly heartbeat: Heartbeat,
  ) {
    this.id = resumption.newId();
    this.name = resumption.toName(owner, this.id);
    resumption.write(this.name, this);
    keepAlives.add(this);
    this.enqueue(async () => {
      const entry = await this.keep('');
      if (entry !== null) this.stream.write(formatPrimingFrame(this.eventId(entry), RETRY_DELAY));
    });
  }

  readonly endStream = (): void => this.enqueue(() => Promise.resolve(this.disconnect()));

  /** Not logged: a client that reconnects receives later heartbeats. */
  beat(now: number): void {
    const beat = this.heartbeat.next(now);
    const json = beat === null || beat === 'comment' ? null : JSON.stringify(beat);
    if (this.connected) this.stream.write(json === null ? KEEP_ALIVE : messageFrame(json));
    else if (json !== null) this.resumption.publishBeat(this.name, json);
  }

  send(message: JsonObject): boolean {
    if (this.pending >= MAX_PENDING) return false;
    const json = JSON.stringify(this.heartbeat.passOn(message));
    this.enqueue(() => this.publish(json));
    return true;
  }

  finish(answer: Reply): void {
    this.enqueue(async () => {
      await this.publish(formatJson(answer));
      this.close();
    });
  }

  drop(): void {
    this.enqueue(async () => {
      await this.resumption.log.forget(this.name).catch(() => undefined);
      this.close();
      this.resumption.announce(this.name);
    });
  }

  leave(): boolean {
    this.disconnect();
    return this.logged;
  }

  handOver(): void {
    this.enqueue(() => {
      this.disconnect();
      this.resumption.announce(this.name);
      return Promise.resolve();
    });
  }

  private enqueue(work: () => Promise<void>): void {
    this.pending += 1;
    this.order = this.order.then(work).finally(() => (this.pending -= 1));
  }

  private async publish(json: string): Promise<void> {
    const entry = await this.keep(json);
    // Without the log a message still reaches a connected client.
    if (this.connected)
      this.stream.write(
        entry === null ? messageFrame(json) : formatIdentifiedFrame(this.eventId(entry), json),
      );
    else if (entry !== null) this.resumption.announce(this.name);
  }

  private async keep(json: string): Promise<string | null> {
    try {
      return await this.resumption.log.append(this.name, json, this.owner.agent.principal);
    } catch {
      this.logged = false;
      return null;
    }
  }

  private eventId(entry: string): string {
    return `${this.id}.${entry}`;
  }

  private disconnect(): void {
    this.connected = false;
    if (!this.heartbeat.isAskedFor) this.keepAlives.remove(this);
    this.stream.end();
  }

  private close(): void {
    this.disconnect();
    this.keepAlives.remove(this);
    this.resumption.endWriting(this.name);
  }
}

/** Keep-alives after which the log is read without an announcement: its writer may have died. */
const BEATS_BETWEEN_LOOKS = 8;

/** A message of JSON-RPC; null: nothing that a stream logs. */
function readMessage(frame: string): JsonObject | null {
  try {
    const message: unknown = JSON.parse(frame);
    return isJsonObject(message) ? message : null;
  } catch {
    return null;
  }
}

/** An answer by JSON-RPC: it has no method, and ends its stream. */
const isAnswer = (message: JsonObject): boolean => !('method' in message);

/** Sends the rest of a logged stream to a client that reconnected. */
export class ReturnedStream implements FollowedStream, OpenStream {
  private reading = false;
  private again = false;
  private entry: string;
  private beats = 0;

  constructor(
    private readonly stream: EventStream,
    private readonly keepAlives: KeepAlives,
    private readonly resumption: Resumption,
    private readonly place: StreamPlace,
  ) {
    this.entry = place.entry;
  }

  /** @param missed the frames that were read from the log already */
  begin(missed: readonly LoggedFrame[]): void {
    this.keepAlives.add(this);
    this.again = true;
    void this.read(missed);
    this.resumption.follow(this.place.stream, this);
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

  beatReceived(json: string): void {
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

  private async read(missed: readonly LoggedFrame[] = []): Promise<void> {
    this.reading = true;
    await this.publish(missed);
    while (this.again && this.stream.isOpen) {
      this.again = false;
      try {
        const frames = await this.resumption.readAfter({ ...this.place, entry: this.entry });
        if (frames) await this.publish(frames);
        // The stream was cancelled or removed: no further frame will arrive.
        else this.end();
      } catch {
        // An outage: the next announcement or keep-alive tries again.
      }
    }
    this.reading = false;
  }

  /** One frame after the other, as the client accepts them: many at once would be too much for one that reads slowly. */
  private async publish(frames: readonly LoggedFrame[]): Promise<void> {
    for (const { entry, frame } of frames) {
      if (!this.stream.isOpen) return;
      this.entry = entry;
      const message = readMessage(frame);
      if (!message) continue;
      this.stream.write(formatIdentifiedFrame(`${this.place.id}.${entry}`, frame));
      if (isAnswer(message)) this.end();
      await this.stream.accepted();
    }
  }
}
