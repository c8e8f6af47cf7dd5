import { Injectable } from '@nestjs/common';
import { AGENT_SUSPENDED } from '#core';
import { SuspendedAgents } from '#state';
import { Resumption } from '../sse/resumable-stream.js';
import { type CallName, RunningRequests } from '../edge-request.js';
import { PendingClientRequests } from './client-requests.js';
import { ListeningStreams, ReplicatedListChanges } from './listening-streams.js';
import { ReplicaSignals, text } from './replica-signals.js';

/** The session to end, and the principal that ends it. */
export interface SessionEnding {
  readonly session: string;
  /** The principal: calls of another principal under the same id continue. */
  readonly owner: string;
  /** Whether the session belongs to the principal; otherwise the id only labels its calls. */
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

  /** Ends a call wherever it runs. The principal is part of its key: no principal ends another's call. */
  cancel(name: CallName, reason: string): void {
    if (!this.calls.cancel(name, reason)) void this.signals.publish('cancel', { ...name, reason });
  }

  /** Ends all work of its owner in a session, on every replica: calls, client requests and the listening stream. */
  async endSession(ending: SessionEnding): Promise<void> {
    this.endHere(ending);
    await this.signals.publish('ended', { ...ending });
  }

  private endHere({ session, owner, isOwn }: SessionEnding): void {
    this.calls.endSession({ session, owner }, 'session_terminated');
    if (!isOwn) return;
    this.clientRequests.endSession(session);
    this.listening.endSession(session);
  }
}
