import type { EdgeRequest } from '../edge-request.js';

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
  private readonly running = new Set<EdgeRequest>();
  private readonly named = new Map<string, EdgeRequest>();

  /**
   * Called before the work starts, so that an early cancellation is not missed. A later call with the same key replaces it.
   */
  begin(call: EdgeRequest): void {
    this.running.add(call);
    const key = this.keyOfCall(call);
    if (key !== null) this.named.set(key, call);
  }

  end(call: EdgeRequest): void {
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

  private keyOfCall({ label, message: { id }, agent }: EdgeRequest): string | null {
    if (label === undefined || id === undefined || id === null) return null;
    return keyOf({ owner: agent.principal, session: label, requestId: id });
  }
}
