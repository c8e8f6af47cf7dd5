import { Injectable } from '@nestjs/common';
import { AGENT_SUSPENDED, callerKey, type Agent } from '#core';
import { SuspendedAgents } from '#state';
import { Resumption } from '../sse/resumable-stream.js';
import { type CallName, RunningRequests } from '../edge-request.js';
import { PendingClientRequests } from './client-requests.js';
import { ListeningStreams, ReplicatedListChanges } from './listening-streams.js';
import { ReplicaSignals, text } from './replica-signals.js';

/** The session to end, and who ends it: calls of others under the same id continue. */
export interface SessionEnding {
  readonly session: string;
  /** Of its own session the principal; of an id that only labels calls, as whom the caller was admitted (`callerKey`). */
  readonly owner: string;
  readonly isOwn: boolean;
}

/** The signals between clients and calls besides request and answer, for all replicas. */
@Injectable()
export class Wire {
  readonly calls = new RunningRequests();

  constructor(
    private readonly signals: ReplicaSignals,
    readonly listening: ListeningStreams,
    readonly clientRequests: PendingClientRequests,
    readonly listChanges: ReplicatedListChanges,
    readonly resumption: Resumption,
    readonly suspended: SuspendedAgents,
  ) {
    suspended.changes.subscribe(() =>
      this.calls.endWhere((agent) => suspended.isSuspended(agent), AGENT_SUSPENDED),
    );
    signals.listenTo('cancel').subscribe((message) => {
      const [owner, session, reason] = [
        text(message, 'owner'),
        text(message, 'session'),
        text(message, 'reason'),
      ];
      if (owner && session && reason)
        this.calls.cancel({ owner, session, requestId: message.requestId }, reason);
    });
    signals.listenTo('ended').subscribe((message) => {
      const [session, owner] = [text(message, 'session'), text(message, 'owner')];
      if (session && owner) this.endHere({ session, owner, isOwn: message.isOwn === true });
    });
  }

  /** Ends a call wherever it runs. The caller is part of its key: nobody ends another's call. */
  cancel(name: CallName, reason: string): void {
    if (!this.calls.cancel(name, reason)) void this.signals.publish('cancel', { ...name, reason });
  }

  /** Ends all work of its owner in a session, on every replica: calls, client requests and the listening stream. */
  async endSession(ending: SessionEnding): Promise<void> {
    this.endHere(ending);
    await this.signals.publish('ended', { ...ending });
  }

  private endHere({ session, owner, isOwn }: SessionEnding): void {
    const isMeant = (caller: Agent) => (isOwn ? caller.principal : callerKey(caller)) === owner;
    this.calls.endSession(session, isMeant, 'session_terminated');
    if (!isOwn) return;
    this.clientRequests.endSession(session);
    this.listening.endSession(session);
  }
}
