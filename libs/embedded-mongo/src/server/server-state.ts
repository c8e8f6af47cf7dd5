import { type Timestamp } from 'bson';
import type { Document } from '../bson/document.js';
import { mongoError } from '../errors.js';
import type { EvaluationOrder } from '../query/evaluation-order.js';
import type { DocumentStore, Workspace } from '../storage/store.js';
import type { Users, ClientInfo } from './access.js';
import { SnapshotTable } from './common-arguments.js';
import { CursorTable } from './cursors.js';
import { FailPoints } from './fail-point.js';
import { type Operation, OperationTable } from './operation.js';
import { type ServerSession, SessionTable } from './sessions.js';
import type { Transaction } from './transaction.js';

/** Everything a command may use. */
export interface CommandContext {
  readonly server: ServerState;
  readonly client: ClientInfo;
  readonly name: string;
  readonly db: string;
  readonly operation: Operation;
  /** The live data, a snapshot of it, or the view of the transaction the command runs in. */
  readonly workspace: Workspace;
  readonly session: ServerSession | undefined;
  readonly transaction: Transaction | undefined;
  readonly txnNumber: string | undefined;
  /** The one moment the command runs at. */
  readonly now: Date;
  /** The time of the set at that moment; undefined for a standalone. */
  readonly clusterTime: Timestamp | undefined;
  /** The encoded documents of an array field of the command. */
  rawDocuments(field: string): Buffer[] | undefined;
}

/** Answers one command; throws MongoError to refuse it. The reply may hold `RawBson` documents. */
export type CommandHandler = (command: Document, ctx: CommandContext) => Document | Promise<Document>;

/** How long a set has no primary after a step-down, in milliseconds. */
const ELECTION_MS = 200;

/**
 * The members of the replica set and which of them is the primary. All members have the same data: they are addresses of one
 * server, so that a test can have another primary without copying anything.
 */
export class ReplicaSet {
  /** `host:port` of each member, or the socket path, once the server listens. */
  addresses: readonly string[] = [''];
  /** Counts the elections. */
  term = 1;
  private elected = 0;
  private electedAt = 0;
  /** When each member may be elected again, in epoch milliseconds. */
  private readonly barredUntil: number[];

  constructor(
    /** Name of the set; undefined for a standalone. */
    readonly name: string | undefined,
    readonly size: number,
    private readonly now: () => number = Date.now,
  ) {
    this.barredUntil = Array.from({ length: size }, () => 0);
  }

  /** The member that takes writes; undefined until the next election. */
  get primary(): number | undefined {
    return this.now() >= this.electedAt ? this.elected : undefined;
  }

  findAddress(member: number): string {
    return this.addresses[member] ?? '';
  }

  /**
   * Makes another member the primary, after a moment without any. The only member of a set becomes primary again after `seconds`.
   * Errors: 76 on a standalone, 10107 when the member is not the primary.
   */
  stepDown(member: number, seconds: number): void {
    if (this.name === undefined) throw mongoError(76, 'not running with --replSet');
    if (this.primary !== member) throw mongoError(10107, "not primary so can't step down");
    const now = this.now();
    this.barredUntil[member] = now + seconds * 1000;
    const others = this.addresses.map((_, place) => (member + 1 + place) % this.size);
    const free = (place: number): number => this.barredUntil[place] ?? 0;
    const next = others.reduce((best, place) =>
      Math.max(free(place), now) < Math.max(free(best), now) ? place : best,
    );
    this.elected = next;
    this.electedAt = Math.max(now + ELECTION_MS, free(next));
    this.term += 1;
  }
}

/** A connection as the server sees it. */
export interface OpenConnection {
  readonly client: ClientInfo;
  close(): void;
}

/** A member that hangs: it takes requests and answers none of them until the pause is over. */
class Pause {
  private ended: Promise<void> | undefined;
  private end: (() => void) | undefined;

  begin(): void {
    this.ended ??= new Promise((resolve) => (this.end = resolve));
  }

  finish(): void {
    this.end?.();
    this.ended = undefined;
  }

  /** Waits as long as the pause lasts. */
  async over(): Promise<void> {
    while (this.ended) await this.ended;
  }
}

/** What all connections of one server have in common. */
export class ServerState {
  readonly cursors = new CursorTable();
  readonly operations = new OperationTable();
  readonly sessions = new SessionTable();
  readonly snapshots: SnapshotTable;
  /** One for each member of the set. */
  readonly failPoints: readonly FailPoints[];
  readonly pauses: readonly Pause[];
  /** The open connections. */
  readonly connected = new Set<OpenConnection>();
  readonly startedAt = new Date();
  /** Commands seen so far, by name. */
  readonly counters = new Map<string, number>();
  connections = 0;
  connectionsEver = 0;

  constructor(
    readonly store: DocumentStore,
    readonly replicas: ReplicaSet,
    /** Undefined: nobody has to log in. */
    readonly users: Users | undefined,
    readonly maxConnections: number,
    /** Whether search stages and search indexes are answered. */
    readonly search: boolean,
    /** Set where filters are not evaluated as they are written. */
    readonly order?: EvaluationOrder,
  ) {
    this.snapshots = new SnapshotTable(store);
    this.failPoints = Array.from({ length: replicas.size }, () => new FailPoints());
    this.pauses = this.failPoints.map(() => new Pause());
  }

  /** Name of the replica set the server claims to be; undefined for a standalone. */
  get replSet(): string | undefined {
    return this.replicas.name;
  }

  /** `host:port` of the first member or the socket path, once the server listens. */
  get address(): string {
    return this.replicas.findAddress(0);
  }

  /**
   * Another member becomes the primary. Open transactions are aborted, as no other member knows them.
   * @param cut whether the other connections of the member are closed
   */
  stepDown(member: number, seconds: number, cut: boolean, asking?: number): void {
    this.replicas.stepDown(member, seconds);
    this.sessions.abortTransactions();
    if (!cut) return;
    for (const { client, close } of this.connected) {
      if (client.member === member && client.connectionId !== asking) close();
    }
  }

  count(command: string): void {
    this.counters.set(command, (this.counters.get(command) ?? 0) + 1);
  }
}
