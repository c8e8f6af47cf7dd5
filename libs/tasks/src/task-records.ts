import { Inject, Injectable } from '@nestjs/common';
import {
  Agent,
  CurrentAgents,
  type Identity,
  MASTER,
  type Owner,
  sessionIdentity,
  type CallApproval,
  type JsonObject,
} from '#core';
import { listArgumentNames } from '#audit';
import { MAX_LISTED_RECORDS, SharedState, type VersionedStore } from '#state';
import {
  type RequestStateContent,
  type RpcError,
  SealedText,
  StateKeys,
  type TaskState,
  type TaskStatus,
  type WireRequest,
} from '#dispatcher';

/** Milliseconds between two polls, as clients receive it. */
const POLL_INTERVAL = 1_000;

/** The settings of tasks; times in milliseconds. */
export abstract class TaskSettings {
  /** How long a task and its result are stored after its last change. */
  abstract readonly lifetime: number;
  /** How often a run marks itself as alive; one silent for five times as long is queued again at the next poll. */
  abstract readonly heartbeat: number;
  /** Maximum tasks that one principal may create within a lifetime. */
  abstract readonly maxPerPrincipal: number;
}

/** Topics on the message bus. */
export const CANCELLED_TOPIC = 'tasks.cancelled';
export const ENDED_TOPIC = 'tasks.ended';

/** The stored state of a task: enough for any replica to run it. */
export interface TaskRecord {
  readonly owner: Owner;
  /** Sealed: it may hold a session token. */
  readonly agent: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly correlationId?: string;
  /** W3C `traceparent` of the call that began it. */
  readonly began?: string;
  readonly approval?: CallApproval;
  readonly status: TaskStatus;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly lastUpdatedAt: number;
  readonly soFar?: RequestStateContent;
  /** The client requests of the last run. */
  readonly open: Readonly<Record<string, WireRequest>>;
  readonly responses: JsonObject;
  /** The number of the run that is due or in progress; one more after each round of answers. */
  readonly run: number;
  /** Whether a worker has started that run. */
  readonly begun: boolean;
  /** Whether a worker has started any run of it, one that was handed over too. */
  readonly ran?: boolean;
  /** The attempt at that run that called a tool which may change data: no other one does, and it ends the run. */
  readonly changedBy?: string | undefined;
  /** The attempt that ended that run, or is about to: no other one does, unless its worker dies before. */
  readonly endedBy?: string | undefined;
  /** `CurrentAgents.digestRights` of the last run that ended. */
  readonly rights?: string;
  readonly result?: JsonObject;
  readonly error?: RpcError;
}

const FINAL_STATUSES: ReadonlySet<TaskStatus> = new Set<TaskStatus>(['completed', 'failed', 'cancelled']);

export const hasEnded = ({ status }: Pick<TaskRecord, 'status'>): boolean => FINAL_STATUSES.has(status);

/** The client requests that are not answered yet. */
export function listUnanswered({ open, responses }: TaskRecord): Record<string, WireRequest> {
  return Object.fromEntries(Object.entries(open).filter(([key]) => !Object.hasOwn(responses, key)));
}

/** Another version of Parley may have written it: an object that lacks a required member is no task. */
function readTaskRecord(value: Readonly<Record<string, unknown>>): TaskRecord | undefined {
  const { owner, agent, tool, args, open, responses, status, run, createdAt } = value;
  const objects = [owner, args, open, responses].every((part) => part !== null && typeof part === 'object');
  const texts = [agent, tool, status].every((part) => typeof part === 'string');
  return objects && texts && typeof run === 'number' && typeof createdAt === 'number'
    ? (value as unknown as TaskRecord)
    : undefined;
}

/** The task as its owner sees it. */
export function taskState(taskId: string, record: TaskRecord, ttl: number): TaskState {
  const { status, createdAt, lastUpdatedAt, result, error } = record;
  return {
    taskId,
    status,
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(lastUpdatedAt).toISOString(),
    ttlMs: ttl,
    pollIntervalMs: POLL_INTERVAL,
    ...(status === 'completed' && result && { result }),
    ...(status === 'failed' && error && { error }),
    ...(status === 'input_required' && { inputRequests: listUnanswered(record) }),
  };
}

/** Returns the changed record; `null` leaves it unchanged. */
export type TaskChange = (record: TaskRecord) => TaskRecord | null;

/** The records of tasks. Changes are applied one after another across replicas. */
@Injectable()
export class TaskRecords {
  /** Milliseconds since 1970, the same for all replicas. */
  readonly now: () => number;
  private readonly store: VersionedStore;
  private readonly lifetime: number;

  constructor(
    @Inject(SharedState) { clock, tasks }: Pick<SharedState, 'clock' | 'tasks'>,
    @Inject(TaskSettings) { lifetime }: Pick<TaskSettings, 'lifetime'>,
  ) {
    this.now = () => Math.round(clock());
    this.store = tasks;
    this.lifetime = lifetime;
  }

  create(taskId: string, record: TaskRecord): Promise<boolean> {
    return this.store.create(taskId, { ...record }, this.lifetime, record.owner.principal);
  }

  async find(taskId: string): Promise<TaskRecord | undefined> {
    const found = await this.store.find(taskId);
    return found && readTaskRecord(found.value);
  }

  /** The tasks of an agent's callers that have not ended, those that changed last. */
  async listOpen(agent: string): Promise<readonly (readonly [taskId: string, owner: Owner])[]> {
    return (await this.store.latest(MAX_LISTED_RECORDS)).flatMap(({ id, value }) => {
      const record = readTaskRecord(value);
      return record && record.owner.agent === agent && !hasEnded(record) ? [[id, record.owner] as const] : [];
    });
  }

  /** Milliseconds since the task was created. */
  measureAge({ createdAt }: Pick<TaskRecord, 'createdAt'>): number {
    return Math.max(0, this.now() - createdAt);
  }

  remove(taskId: string): Promise<void> {
    return this.store.remove(taskId);
  }

  /** @returns the record after the change; `undefined` when there is none or it was left as it is */
  async change(taskId: string, change: TaskChange): Promise<TaskRecord | undefined> {
    for (;;) {
      const found = await this.store.find(taskId);
      const record = found && readTaskRecord(found.value);
      const changed = record && change(record);
      if (!changed) return undefined;
      const next = { ...changed, lastUpdatedAt: this.now() };
      if (await this.store.replace(taskId, found.revision, next, this.lifetime)) return next;
    }
  }
}

/** A task as an operator sees it: names, never a value of an argument or a result. */
export interface ListedTask {
  readonly id: string;
  readonly owner: Owner;
  readonly tool: string;
  readonly args_keys: readonly string[];
  readonly status: TaskStatus;
  readonly run: number;
  readonly begun: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly correlation_id?: string;
}

/** For operators: the tasks of all owners, those that changed last first. Must not be shown to an agent. */
@Injectable()
export class TaskOverview {
  private readonly store: Pick<VersionedStore, 'latest'>;

  constructor(@Inject(SharedState) { tasks }: Pick<SharedState, 'tasks'>) {
    this.store = tasks;
  }

  /** @throws SharedStateUnavailable */
  async latest(limit: number): Promise<readonly ListedTask[]> {
    const found = await this.store.latest(limit);
    return found.flatMap(({ id, value }) => {
      const record = readTaskRecord(value);
      if (!record) return [];
      const { owner, tool, args, status, run, begun, createdAt, lastUpdatedAt, correlationId } = record;
      return [
        {
          id,
          owner,
          tool,
          args_keys: listArgumentNames(args),
          status,
          run,
          begun,
          created_at: new Date(createdAt).toISOString(),
          updated_at: new Date(lastUpdatedAt).toISOString(),
          ...(correlationId !== undefined && { correlation_id: correlationId }),
        },
      ];
    });
  }
}

interface Reference {
  /** Name of the agent definition. Stored under this key by every version. */
  readonly shape: string;
  readonly principal: string;
  readonly tenantId: string | number | null;
  readonly user: string | null;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly identity: { readonly kind: Identity['kind']; readonly name?: string };
  readonly impersonatedUserId: string | null;
  readonly impersonationLabel: string | null;
  readonly keyName: string | null;
}

/**
 * Stores the owner of a task, and creates the owner's agent again later, under the current limits of its definition. Sealed,
 * because an identity may be a session token.
 */
@Injectable()
export class AgentReferences {
  private readonly sealed: SealedText;

  /** @param configured an agent that no longer exists is not created again */
  constructor(
    @Inject(CurrentAgents)
    private readonly configured: Pick<CurrentAgents, 'findDefinition' | 'knows' | 'digestRights'>,
    keys: StateKeys,
  ) {
    this.sealed = new SealedText(keys, 'parley task agent');
  }

  digestRights(agent: Agent): string {
    return this.configured.digestRights(agent);
  }

  /** @returns `undefined` for a sub-agent, because no name identifies its limits */
  async write(agent: Agent, taskId: string): Promise<string | undefined> {
    if (agent.parent || !this.configured.knows(agent.definition)) return undefined;
    const { impersonatedUserId, impersonationLabel } = agent;
    const reference: Reference = {
      shape: agent.definition.name,
      impersonatedUserId,
      impersonationLabel,
      principal: agent.principal,
      user: agent.user,
      tenantId: agent.tenantId,
      claims: agent.claims,
      keyName: agent.keyName,
      identity: nameIdentity(agent.identity),
    };
    return this.sealed.seal(JSON.stringify(reference), taskId);
  }

  /** @returns `undefined` when it was not written for this task, or its agent is no longer configured */
  async read(text: string, taskId: string): Promise<Agent | undefined> {
    const plain = await this.sealed.open(text, taskId);
    if (plain === undefined) return undefined;
    const { shape: name, identity, impersonatedUserId, ...known } = JSON.parse(plain) as Reference;
    const definition = this.configured.findDefinition(name);
    const made = toIdentity(identity);
    if (!definition || !made) return undefined;
    return new Agent({
      ...known,
      definition,
      identity: made,
      ...(impersonatedUserId !== null && { impersonatedUserId }),
    });
  }
}

function nameIdentity(identity: Identity): Reference['identity'] {
  switch (identity.kind) {
    case 'master':
      return { kind: 'master' };
    case 'sessionToken':
      return { kind: identity.kind, name: identity.token };
    case 'aclUser':
      return { kind: identity.kind, name: identity.userId };
    case 'aclRole':
      return { kind: identity.kind, name: identity.role };
  }
}

function toIdentity({ kind, name }: Reference['identity']): Identity | undefined {
  if (kind === 'master') return MASTER;
  if (name === undefined) return undefined;
  if (kind === 'sessionToken') return sessionIdentity(name);
  return kind === 'aclUser' ? { kind, userId: name } : { kind, role: name };
}
