import { createHash, randomUUID } from 'node:crypto';
import { type Agent, admittedAs } from '#agent';
import type { StreamLog } from '#cluster';
import { type ReplicaSignals, text } from '../wire/replica-signals.js';

/** A stream that is being written here, for a call that runs here. */
export interface WrittenStream {
  /** Its client came back by another connection: that one tells it from now on. */
  handOver(): void;
}

/** A stream whose client came back here. */
export interface FollowedStream {
  /** Something may have been written since. */
  follow(): void;
  /** The call goes on, and has nothing to say: said once, and not logged. */
  hearBeat(json: string): void;
}

/** Whose stream it is. */
export interface StreamOwner {
  readonly session: string;
  readonly agent: Agent;
}

/** The place in a stream after which its client wants to go on. */
export interface StreamPlace {
  readonly stream: string;
  readonly entry: string;
}

const EVENT_ID = /^([0-9a-f-]{36})\.([0-9A-Za-z-]{1,64})$/;

/** Streams that outlive their connection: who writes them, who follows them, and how one finds the other on any replica. */
export class Resumption {
  private readonly written = new Map<string, WrittenStream>();
  private readonly followed = new Map<string, FollowedStream>();

  constructor(
    readonly log: StreamLog,
    private readonly signals: ReplicaSignals,
  ) {
    signals
      .heard('resumed')
      .subscribe((message) => this.written.get(text(message, 'stream') ?? '')?.handOver());
    signals
      .heard('logged')
      .subscribe((message) => this.followed.get(text(message, 'stream') ?? '')?.follow());
    signals.heard('beat').subscribe((message) => {
      const json = text(message, 'json');
      if (json !== undefined) this.followed.get(text(message, 'stream') ?? '')?.hearBeat(json);
    });
  }

  /** The part of a stream's name that its client sees. */
  newId(): string {
    return randomUUID();
  }

  /**
   * A stream belongs to its session and to the agent that called: under another one the same id names nothing. A session is
   * its principal's, who may come with a token of fewer scopes.
   */
  nameOf({ session, agent }: StreamOwner, id: string): string {
    const owner = createHash('sha256').update(admittedAs(agent)).digest('base64url');
    return `${session}/${owner}/${id}`;
  }

  /** What a `Last-Event-ID` names for its owner; `null` when it is none of ours. */
  placeOf(owner: StreamOwner, eventId: string): (StreamPlace & { readonly id: string }) | null {
    const [, id, entry] = EVENT_ID.exec(eventId) ?? [];
    return id && entry ? { id, stream: this.nameOf(owner, id), entry } : null;
  }

  write(stream: string, writer: WrittenStream): void {
    this.written.set(stream, writer);
  }

  endWriting(stream: string): void {
    this.written.delete(stream);
  }

  /** The newest follower of a stream is the only one. */
  follow(stream: string, follower: FollowedStream): void {
    this.followed.set(stream, follower);
    this.written.get(stream)?.handOver();
    void this.signals.tell('resumed', { stream });
  }

  endFollowing(stream: string, follower: FollowedStream): void {
    if (this.followed.get(stream) === follower) this.followed.delete(stream);
  }

  /** Something was logged while nobody was connected here. */
  announce(stream: string): void {
    this.followed.get(stream)?.follow();
    void this.signals.tell('logged', { stream });
  }

  /** A sign of life of a call whose client lost this connection and may have come back, here or elsewhere. */
  tellBeat(stream: string, json: string): void {
    const here = this.followed.get(stream);
    if (here) here.hearBeat(json);
    else void this.signals.tell('beat', { stream, json });
  }
}
