import type { Agent } from '#core';
import type { Message } from '../message.js';

/** A request in progress that can be aborted from outside. */
export interface RunningCall {
  readonly agent: Agent;
  readonly message: Pick<Message, 'id'>;
  /** The session it came in, or a mere label that names none. */
  readonly label: string | undefined;
  abort(reason: string): void;
}

/** The key of a call for its cancellation: the principal, its session and the JSON value of its request id. */
export interface CallName {
  readonly owner: string;
  readonly session: string;
  readonly requestId: unknown;
}

function keyOf({ owner, session, requestId }: CallName): string {
  return JSON.stringify([owner, session, requestId]);
}

/** The calls that run in this process. */
export class RunningCalls {
  private readonly running = new Set<RunningCall>();
  private readonly named = new Map<string, RunningCall>();

  /**
   * Called before the work starts, so that an early cancellation is not missed. A later call with the same key replaces it.
   */
  begin(call: RunningCall): void {
    this.running.add(call);
    const key = this.keyOfCall(call);
    if (key !== null) this.named.set(key, call);
  }

  end(call: RunningCall): void {
    this.running.delete(call);
    const key = this.keyOfCall(call);
    if (key !== null && this.named.get(key) === call) this.named.delete(key);
  }

  /** @returns whether there was such a call */
  cancel(name: CallName, reason: string): boolean {
    const key = keyOf(name);
    const call = this.named.get(key);
    if (!call) return false;
    this.named.delete(key);
    call.abort(reason);
    return true;
  }

  /** Ends every call that a principal made in a session, or under an id that names none. */
  endSession({ session, owner }: Omit<CallName, 'requestId'>, reason: string): void {
    for (const call of this.running)
      if (call.label === session && call.agent.principal === owner) call.abort(reason);
  }

  /** Ends every call of a connection that serves one client only. */
  endLabel(label: string, reason: string): void {
    for (const call of this.running) if (call.label === label) call.abort(reason);
  }

  endAll(reason: string): void {
    for (const call of this.running) call.abort(reason);
  }

  private keyOfCall({ label, message: { id }, agent }: RunningCall): string | null {
    if (label === undefined || id === undefined || id === null) return null;
    return keyOf({ owner: agent.principal, session: label, requestId: id });
  }
}
