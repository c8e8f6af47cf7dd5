import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { merge } from 'rxjs';
import { OneTimeStore } from '#state';
import { type Agent, type ClientReply, ClientUnreachable, isJsonObject, type JsonObject } from '#core';
import type { Message } from '../message.js';
import { ListeningStreams } from './listening-streams.js';
import { notification } from '../sse/event-stream.js';
import { ReplicaSignals, text } from './replica-signals.js';

/** The required sender of a reply. */
interface RequestSender {
  /** As whom the caller was admitted (`callerKey`). */
  readonly owner: string;
  readonly session: string;
}

export interface ClientRequest extends RequestSender {
  readonly method: string;
  readonly params: JsonObject;
  /** Milliseconds. */
  readonly timeout: number;
  /** Aborted when nobody needs the reply any more. Default: as long as the call waits, it is needed. */
  readonly withdrawn?: AbortSignal;
  /** The call that waits for the reply. */
  readonly call: {
    readonly agent: Agent;
    readonly signal: AbortSignal;
    readonly aborted: boolean;
  };
  /** Sends on the stream of the call itself; false when that cannot carry requests. */
  readonly onOwnStream: (message: JsonObject) => boolean;
}

interface Waiting {
  readonly session: string;
  /** Sent on the session's listening stream: when that closes, no answer will come. */
  readonly listening: boolean;
  readonly settle: (outcome: ClientReply | ClientUnreachable) => void;
}

/** Said to a client whose answer is not needed any more. */
const WITHDRAWN = 'what was asked about is over';

const toKey = ({ owner, session }: RequestSender, id: unknown) =>
  `ask:${JSON.stringify([owner, session, id])}`;

/** Unanswered requests to clients. A reply may arrive at any replica and counts once. */
@Injectable()
export class PendingClientRequests {
  private readonly waiting = new Map<string, Waiting>();

  constructor(
    private readonly store: OneTimeStore,
    private readonly signals: ReplicaSignals,
    private readonly streams: ListeningStreams,
  ) {
    // A client that reconnects does not answer requests of its earlier stream.
    merge(streams.left, streams.returning).subscribe((left) => {
      for (const { session, listening, settle } of this.waiting.values())
        if (listening && session === left) settle(new ClientUnreachable('aborted'));
    });
    signals.listenTo('reply').subscribe((message) => {
      const reply = readReply(message);
      if (reply) this.waiting.get(text(message, 'ask') ?? '')?.settle(reply);
    });
  }

  /** @throws ClientUnreachable */
  async ask(question: ClientRequest): Promise<ClientReply> {
    const { call, timeout, withdrawn } = question;
    if (call.aborted) throw new ClientUnreachable('aborted');
    if (withdrawn?.aborted) throw new ClientUnreachable('withdrawn');
    const id = randomUUID();
    const key = toKey(question, id);
    try {
      await this.store.keep(key, {}, timeout, call.agent.principal);
    } catch {
      throw new ClientUnreachable('not-delivered');
    }
    try {
      return await this.waitForReply(id, question);
    } finally {
      this.waiting.delete(id);
      // The key was used, or must never be used: during an outage it expires by itself.
      this.store.take(key).catch(() => undefined);
    }
  }

  /** A posted response. It settles its own request, once; any other is ignored, and the answer does not reveal that. */
  async deliver(from: RequestSender, { id, result, error }: Message): Promise<void> {
    if (typeof id !== 'string') return;
    const taken = await this.store.take(toKey(from, id)).catch(() => undefined);
    if (!taken) return;
    const reply = error === undefined ? { result } : { error };
    const here = this.waiting.get(id);
    if (here) here.settle(reply);
    else await this.signals.publish('reply', { ask: id, ...reply });
  }

  /** Must be called on every replica when a session ends. */
  endSession(ended: string): void {
    for (const { session, settle } of this.waiting.values())
      if (session === ended) settle(new ClientUnreachable('aborted'));
  }

  private waitForReply(id: string, question: ClientRequest): Promise<ClientReply> {
    const { call, owner, session, method, params, timeout, withdrawn, onOwnStream } = question;
    const request = { jsonrpc: '2.0', id, method, params };
    return new Promise((resolve, reject) => {
      const settle = (outcome: ClientReply | ClientUnreachable) => {
        clearTimeout(timer);
        call.signal.removeEventListener('abort', settleAborted);
        withdrawn?.removeEventListener('abort', withdraw);
        if (outcome instanceof ClientUnreachable) reject(outcome);
        else resolve(outcome);
      };
      const settleAborted = () => settle(new ClientUnreachable('aborted'));
      const withdraw = () => {
        settle(new ClientUnreachable('withdrawn'));
        const cancelled = notification('notifications/cancelled', { requestId: id, reason: WITHDRAWN });
        if (!onOwnStream(cancelled)) void this.streams.deliver(session, JSON.stringify(cancelled), owner);
      };
      const timer = setTimeout(() => settle(new ClientUnreachable('timed-out')), timeout);
      call.signal.addEventListener('abort', settleAborted, { once: true });
      withdrawn?.addEventListener('abort', withdraw, { once: true });
      // Registered before it is sent: an answer may arrive before the next line runs.
      this.waiting.set(id, { session, listening: false, settle });
      if (onOwnStream(request)) return;
      this.waiting.set(id, { session, listening: true, settle });
      void this.streams.deliver(session, JSON.stringify(request), owner).then((delivered) => {
        if (!delivered) settle(new ClientUnreachable('no-stream'));
      });
    });
  }
}

function readReply(message: JsonObject): ClientReply | undefined {
  if (!isJsonObject(message)) return undefined;
  if ('error' in message) return { error: message.error };
  return 'result' in message ? { result: message.result } : undefined;
}
