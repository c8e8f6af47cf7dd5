import { processState, type SharedState } from '#state';
import type { WarningLog } from '#dispatcher';
import { Resumption } from '../sse/resumable-stream.js';
import { type CallName, RunningCalls } from './cancellation.js';
import { ClientRequests } from './client-requests.js';
import { ListeningStreams, ReplicatedListChanges } from './listening-streams.js';
import { ReplicaSignals, text } from './replica-signals.js';

export interface WireDependencies {
  readonly state: Pick<SharedState, 'reach' | 'bus' | 'oneTime' | 'streams'>;
  readonly log: WarningLog;
}

/** The session to end, and the principal that ends it. */
export interface SessionEnding {
  readonly session: string;
  /** The principal: calls of another principal under the same id continue. */
  readonly owner: string;
  /** Whether the session belongs to the principal; otherwise the id only labels its calls. */
  readonly isOwn: boolean;
}

/** The signals between clients and calls besides request and answer, for all replicas. */
export class Wire {
  readonly calls = new RunningCalls();
  readonly listening: ListeningStreams;
  readonly clientRequests: ClientRequests;
  readonly listChanges: ReplicatedListChanges;
  readonly resumption: Resumption;
  private readonly signals: ReplicaSignals;

  constructor({ state, log }: WireDependencies) {
    const signals = new ReplicaSignals(state.bus, log);
    this.signals = signals;
    this.listening = new ListeningStreams(signals, state.reach === 'process');
    this.clientRequests = new ClientRequests(state.oneTime, signals, this.listening);
    this.listChanges = new ReplicatedListChanges(signals, this.listening);
    this.resumption = new Resumption(state.streams, signals);
    signals.received('cancel').subscribe((message) => {
      const [owner, session, reason] = [
        text(message, 'owner'),
        text(message, 'session'),
        text(message, 'reason'),
      ];
      if (owner && session && reason)
        this.calls.cancel({ owner, session, requestId: message.requestId }, reason);
    });
    signals.received('ended').subscribe((message) => {
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

/** A wire in this process's memory, which serves one replica only. */
export function processWire(log: WarningLog): Wire {
  return new Wire({ state: processState(), log });
}
