import { ObjectId } from 'bson';
import type { EvaluationOrder } from '../query/evaluation-order.js';
import type { Store } from '../storage/store.js';
import { CursorTable } from './cursors.js';
import { FailPoint } from './fail-point.js';
import { OperationTable } from './operation.js';
import { SessionTable } from './sessions.js';

/** What all connections of one server have in common. */
export class ServerState {
  readonly cursors = new CursorTable();
  readonly operations = new OperationTable();
  readonly sessions = new SessionTable();
  readonly failPoint = new FailPoint();
  readonly startedAt = new Date();
  readonly processId = new ObjectId();
  /** Commands seen so far, by name. */
  readonly counters = new Map<string, number>();
  connections = 0;
  connectionsEver = 0;
  /** `host:port` or the socket path, once the server listens. */
  address = '';

  constructor(
    readonly store: Store,
    /** Name of the replica set the server claims to be; undefined for a standalone. */
    readonly replSet: string | undefined,
    readonly maxConnections: number,
    /** Whether search stages and search indexes are answered. */
    readonly search: boolean,
    /** Set where filters are not evaluated as they are written. */
    readonly order?: EvaluationOrder,
  ) {}

  count(command: string): void {
    this.counters.set(command, (this.counters.get(command) ?? 0) + 1);
  }
}
