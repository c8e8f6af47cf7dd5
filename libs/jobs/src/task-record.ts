import type {
  AskedSoFar,
  JsonObject,
  RpcError,
  TaskOwner,
  TaskState,
  TaskStatus,
  WireRequest,
} from '#dispatcher';

/** All that is kept of a task: enough for any replica to run it. */
export interface TaskRecord {
  readonly owner: TaskOwner;
  /** Sealed: it may hold a session token. */
  readonly agent: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly correlationId?: string;
  /** W3C `traceparent` of the call that began it. */
  readonly began?: string;
  /** Who decided upon the call, when somebody had to. */
  readonly approver?: string;
  readonly status: TaskStatus;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly lastUpdatedAt: number;
  readonly soFar?: AskedSoFar;
  /** What the last run asked. */
  readonly open: Readonly<Record<string, WireRequest>>;
  readonly responses: JsonObject;
  /** The run that is due or going on; one more after each round of answers. */
  readonly run: number;
  /** Whether that run has begun, somewhere. */
  readonly begun: boolean;
  readonly result?: JsonObject;
  readonly error?: RpcError;
}

const ENDED: ReadonlySet<TaskStatus> = new Set<TaskStatus>(['completed', 'failed', 'cancelled']);

export const hasEnded = ({ status }: Pick<TaskRecord, 'status'>): boolean => ENDED.has(status);

export const isOwnedBy = ({ owner }: TaskRecord, { principal, tenant, agent }: TaskOwner): boolean =>
  owner.principal === principal && owner.tenant === tenant && owner.agent === agent;

/** What was asked and is not answered yet. */
export function unanswered({ open, responses }: TaskRecord): Record<string, WireRequest> {
  return Object.fromEntries(Object.entries(open).filter(([key]) => !Object.hasOwn(responses, key)));
}

/** Another version of Parley may have written it: what lacks a member that is needed is no task. */
export function readTaskRecord(value: Readonly<Record<string, unknown>>): TaskRecord | undefined {
  const { owner, agent, tool, args, open, responses, status, run, createdAt } = value;
  const objects = [owner, args, open, responses].every((part) => part !== null && typeof part === 'object');
  const texts = [agent, tool, status].every((part) => typeof part === 'string');
  return objects && texts && typeof run === 'number' && typeof createdAt === 'number'
    ? (value as unknown as TaskRecord)
    : undefined;
}

/** The task as its owner sees it. */
export function taskState(
  taskId: string,
  record: TaskRecord,
  times: { ttl: number; poll: number },
): TaskState {
  const { status, createdAt, lastUpdatedAt, result, error } = record;
  return {
    taskId,
    status,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(lastUpdatedAt).toISOString(),
    ttlMs: times.ttl,
    pollIntervalMs: times.poll,
    ...(status === 'completed' && result && { result }),
    ...(status === 'failed' && error && { error }),
    ...(status === 'input_required' && { inputRequests: unanswered(record) }),
  };
}
