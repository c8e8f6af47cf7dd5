import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { filter, firstValueFrom, map, type Observable, share, timeout, TimeoutError } from 'rxjs';
import { type BusMessage, MessageBus } from '#state';

const TOPIC = 'subscriptions';
/** Milliseconds in which another replica must begin a watch. */
const ANSWER_TIMEOUT = 12_000;

/** The outcome of a request to another replica. */
export type WatchOutcome = 'watching' | 'denied' | 'failed';

/** Messages of replicas about subscriptions. */
export type ReplicaMessage =
  /** The stream of the session is here now. */
  | { readonly do: 'hold'; readonly session: string; readonly replica: string }
  /** To the holder of the session's stream: watch this for it, and answer with the outcome. */
  | { readonly do: 'watch'; readonly session: string; readonly uri: string; readonly ask: string }
  | { readonly do: 'watched'; readonly ask: string; readonly outcome: WatchOutcome }
  | { readonly do: 'unwatch'; readonly session: string; readonly uri: string };

const MEMBERS: Readonly<Record<ReplicaMessage['do'], readonly string[]>> = {
  hold: ['session', 'replica'],
  watch: ['session', 'uri', 'ask'],
  watched: ['ask', 'outcome'],
  unwatch: ['session', 'uri'],
};

const OUTCOMES: ReadonlySet<unknown> = new Set<WatchOutcome>(['watching', 'denied', 'failed']);

/** Messages between replicas. A message of another form is ignored. */
@Injectable()
export class ReplicaMessages {
  readonly messages: Observable<ReplicaMessage>;

  constructor(private readonly bus: MessageBus) {
    this.messages = bus.messages(TOPIC).pipe(
      map(read),
      filter((message) => message !== null),
      share(),
    );
  }

  /** @throws SharedStateUnavailable */
  publish(message: ReplicaMessage): Promise<void> {
    return this.bus.publish(TOPIC, message);
  }

  /**
   * Requests the watch from the holder of the session's stream.
   * @returns null when no replica answers in time. @throws SharedStateUnavailable
   */
  async requestWatch(session: string, uri: string): Promise<WatchOutcome | null> {
    const ask = randomUUID();
    const answer = firstValueFrom(
      this.messages.pipe(
        filter((message) => message.do === 'watched'),
        filter((message) => message.ask === ask),
        map(({ outcome }) => outcome),
        timeout({ first: ANSWER_TIMEOUT }),
      ),
    ).catch((error: unknown) => {
      if (error instanceof TimeoutError) return null;
      throw error;
    });
    await this.publish({ do: 'watch', session, uri, ask });
    return answer;
  }
}

function read(message: BusMessage): ReplicaMessage | null {
  const kind = message['do'];
  if (typeof kind !== 'string' || !Object.hasOwn(MEMBERS, kind)) return null;
  const members = MEMBERS[kind as ReplicaMessage['do']];
  if (!members.every((name) => typeof message[name] === 'string')) return null;
  if (kind === 'watched' && !OUTCOMES.has(message['outcome'])) return null;
  return message as unknown as ReplicaMessage;
}
