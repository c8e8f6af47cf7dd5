import type { Document } from '../bson/document.js';
import { mongoError, type MongoError } from '../errors.js';

/** How long a command may hold the event loop before others get their turn, in milliseconds. */
const TURN_MS = 10;
/** How long one expression may take on one document, in milliseconds: it cannot let others in before it is done. */
const EXPRESSION_MS = 1_000;

/**
 * Operations that gave way and go on one after the other. One of them runs in each round of the event loop, so that a command
 * that comes in between waits for a single turn, however many long operations there are.
 */
class TurnQueue {
  private readonly waiting: (() => void)[] = [];
  private isTaken = false;

  /** @returns whether the caller may begin in this round: one does, when nobody waits */
  take(): boolean {
    if (this.isTaken || this.waiting.length > 0) return false;
    this.isTaken = true;
    setImmediate(() => (this.isTaken = false));
    return true;
  }

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      if (this.waiting.length === 1) setImmediate(this.run);
    });
  }

  private readonly run = (): void => {
    this.waiting.shift()?.();
    if (this.waiting.length > 0) setImmediate(this.run);
  };
}

/** One for all servers of a thread, as they have one event loop. */
const turns = new TurnQueue();

/** What long work asks while it runs. */
export interface Pace {
  /** Called in every loop; throws once the operation has to end. */
  tick(): void;
  /** The same in loops of expressions, which cannot give way: throws 50 when one takes too long. */
  tickExpression(): void;
  /** True when others should get their turn. */
  readonly turnIsOver: boolean;
}

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
export class Operation implements Pace {
  readonly startedAt = Date.now();
  private stopped: MongoError | undefined;
  private turnStarted = 0;
  /** Processor time when this turn had become a long one: asking for it is too dear for every command. */
  private cpuInTurn: number | undefined;
  private readonly stopListeners = new Set<() => void>();

  /** @param deadline time in epoch milliseconds after which the operation fails; 0 for none */
  constructor(
    readonly opid: number,
    readonly info: OperationInfo,
    public deadline: number,
  ) {
    this.startTurn();
  }

  /** Called in every loop. Errors: 50 past the deadline, or the reason the operation was stopped for. */
  readonly tick = (): void => {
    if (this.stopped) throw this.stopped;
    if (this.deadline !== 0 && Date.now() > this.deadline)
      throw mongoError(50, 'operation exceeded time limit');
  };

  readonly tickExpression = (): void => {
    this.tick();
    if (!this.turnIsOver) return;
    this.cpuInTurn ??= cpuMilliseconds();
    if (Date.now() - this.turnStarted < EXPRESSION_MS) return;
    // On a busy machine time passes without any work being done.
    if (cpuMilliseconds() - this.cpuInTurn < EXPRESSION_MS) return;
    throw mongoError(50, 'operation exceeded time limit: an expression took too long on one document');
  };

  /** Starts the clock again: called when the operation goes on after it has waited for others. */
  startTurn(): void {
    this.turnStarted = Date.now();
    this.cpuInTurn = undefined;
  }

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
    return Date.now() - this.turnStarted >= TURN_MS;
  }

  /** Called before work that may be long. Of those that come together one begins at once. */
  async begin(): Promise<void> {
    if (!turns.take()) await this.breathe();
  }

  /** Lets other connections run. */
  async breathe(): Promise<void> {
    await turns.next();
    this.startTurn();
    this.tick();
  }

  /** Waits until `wake` is called, the operation is stopped, or `timeoutMs` is over. */
  wait(timeoutMs: number, subscribe: (wake: () => void) => () => void): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        unsubscribe();
        this.stopListeners.delete(wake);
        this.startTurn();
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      const unsubscribe = subscribe(wake);
      this.stopListeners.add(wake);
      if (this.stopped) wake();
    });
  }
}

function cpuMilliseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
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

  /** A retryable write goes on: the driver sends it again over another connection, and must then get its answer. */
  stopConnection(connectionId: number): void {
    for (const operation of this.running.values()) {
      const { info } = operation;
      if (info.connectionId !== connectionId) continue;
      if (info.command['txnNumber'] !== undefined && info.command['autocommit'] === undefined) continue;
      operation.stop(mongoError(279, 'operation was interrupted because the client disconnected'));
    }
  }
}
