import { ObjectId } from 'bson';
import type { EvaluationOrder } from '../query/evaluation-order.js';
import type { DocumentStore } from '../storage/store.js';
import type { Users } from './access.js';
import type { ClientInfo } from './client-info.js';
import { CursorTable } from './cursors.js';
import { FailPoints } from './fail-point.js';
import { OperationTable } from './operation.js';
import { SnapshotTable } from './read-concern.js';
import type { ReplicaSet } from './replica-set.js';
import { SessionTable } from './sessions.js';

/** A connection as the server sees it. */
export interface OpenConnection {
  readonly client: ClientInfo;
  close(): void;
}

/** A member that hangs: it takes requests and answers none of them until the pause is over. */
export class Pause {
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
  readonly processId = new ObjectId();
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
