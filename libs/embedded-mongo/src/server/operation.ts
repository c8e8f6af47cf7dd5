import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Document } from '../bson/document.js';
import { mongoError, type MongoError } from '../errors.js';

/** How long a command may hold the event loop before others get their turn, in milliseconds. */
const TURN_MS = 10;

/** Who and what runs, as currentOp shows it. */
export interface OperationInfo {
  readonly connectionId: number;
  readonly client: string;
  readonly appName: string | undefined;
  readonly name: string;
  readonly namespace: string;
  readonly command: Document;
  readonly lsid: Document | undefined;
}

/** One running command: its deadline, and the place where others may end it. */
export class Operation {
  readonly startedAt = Date.now();
  private stopped: MongoError | undefined;
  private turnStarted = performance.now();
  private readonly stopListeners = new Set<() => void>();

  /** @param deadline time in epoch milliseconds after which the operation fails; 0 for none */
  constructor(
    readonly opid: number,
    readonly info: OperationInfo,
    public deadline: number,
  ) {}

  /** Called in every loop. Errors: 50 past the deadline, or the reason the operation was stopped for. */
  readonly tick = (): void => {
    if (this.stopped) throw this.stopped;
    if (this.deadline !== 0 && Date.now() > this.deadline)
      throw mongoError(50, 'operation exceeded time limit');
  };

  /** Ends the operation at its next tick or wait. */
  stop(reason: MongoError): void {
    if (this.stopped) return;
    this.stopped = reason;
    for (const listener of this.stopListeners) listener();
  }

  get isStopped(): boolean {
    return this.stopped !== undefined;
  }

  /** True when this operation has held the event loop long enough and should `breathe`. */
  get turnIsOver(): boolean {
    return performance.now() - this.turnStarted >= TURN_MS;
  }

  /** Lets other connections run. */
  async breathe(): Promise<void> {
    await nextTurn();
    this.turnStarted = performance.now();
    this.tick();
  }

  /** Waits until `wake` is called, the operation is stopped, or `timeoutMs` is over. */
  wait(timeoutMs: number, subscribe: (wake: () => void) => () => void): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        unsubscribe();
        this.stopListeners.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      const unsubscribe = subscribe(wake);
      this.stopListeners.add(wake);
      if (this.stopped) wake();
    });
  }
}

/** The running commands. */
export class OperationTable {
  private readonly running = new Map<number, Operation>();
  private lastOpid = 0;

  start(info: OperationInfo, deadline: number): Operation {
    this.lastOpid += 1;
    const operation = new Operation(this.lastOpid, info, deadline);
    this.running.set(operation.opid, operation);
    return operation;
  }

  finish(operation: Operation): void {
    this.running.delete(operation.opid);
  }

  list(): Operation[] {
    return [...this.running.values()];
  }

  kill(opid: number): boolean {
    const operation = this.running.get(opid);
    operation?.stop(mongoError(11601, 'operation was interrupted'));
    return operation !== undefined;
  }

  stopConnection(connectionId: number): void {
    for (const operation of this.running.values()) {
      if (operation.info.connectionId !== connectionId) continue;
      operation.stop(mongoError(279, 'operation was interrupted because the client disconnected'));
    }
  }
}
