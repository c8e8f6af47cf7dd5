import {
  type Agent,
  assumedName,
  authType,
  type AuthType,
  type ErrorCode,
  type Refusal,
  type Tier,
} from '#agent';
import { auditedArgumentNames } from './audit-record.js';

interface Operation {
  readonly tool: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly agent_id: string;
  readonly auth_type: AuthType;
  readonly permissions: Tier;
}

/** A call that succeeded. */
interface SuccessEntry extends Operation {
  readonly success: true;
  readonly using_master_key: boolean;
  /** Without the sensitive ones; long text is cut, and only the size of lists and objects is told. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The user or role that was acted for. */
  readonly identity?: string;
}

/** A call that was refused or failed. */
interface FailureEntry extends Operation {
  readonly success: false;
  readonly error: string;
  readonly error_code: ErrorCode;
}

/** A call that tried what no agent may: why is for the operator alone. */
interface SecurityEntry extends Operation {
  readonly type: 'security_violation';
  readonly success: false;
  readonly error_class: string;
  readonly error_message: string;
  readonly error_code: ErrorCode;
  readonly reason: string;
}

export type OperationEntry = SuccessEntry | FailureEntry | SecurityEntry;

export interface FinishedCall {
  readonly tool: string;
  readonly args: unknown;
  readonly agent: Agent;
  /** Absent: it succeeded. */
  readonly refusal?: Refusal;
}

const DEFAULT_SIZE = 1000;
const MAX_TEXT = 256;
const MAX_ARGUMENTS = 32;

/** The latest calls of this process, for its operator; the oldest is forgotten first. Nothing of it reaches an agent. */
export class OperationLog {
  private readonly entries: OperationEntry[] = [];
  private next = 0;

  private maxLogSize = DEFAULT_SIZE;

  /** @param maxLogSize entries kept. Default 1000 */
  constructor(maxLogSize = DEFAULT_SIZE) {
    this.resize(maxLogSize);
  }

  /** From now on keeps so many entries, the latest of those there are among them. */
  resize(maxLogSize: number): void {
    if (!Number.isSafeInteger(maxLogSize) || maxLogSize < 1)
      throw new TypeError('maxLogSize: expected a whole number, one or more');
    if (maxLogSize === this.maxLogSize) return;
    const kept = this.all().slice(-maxLogSize);
    this.entries.splice(0, this.entries.length, ...kept);
    this.maxLogSize = maxLogSize;
    this.next = kept.length % maxLogSize;
  }

  record(call: FinishedCall): void {
    this.entries[this.next] = entryOf(call);
    this.next = (this.next + 1) % this.maxLogSize;
  }

  /** Oldest first. */
  all(): readonly OperationEntry[] {
    return [...this.entries.slice(this.next), ...this.entries.slice(0, this.next)];
  }

  clear(): void {
    this.entries.length = 0;
    this.next = 0;
  }
}

function entryOf({ tool, args, agent, refusal }: FinishedCall): OperationEntry {
  const operation: Operation = {
    tool: tool.slice(0, 128),
    timestamp: new Date().toISOString(),
    agent_id: agent.agentId,
    auth_type: authType(agent.identity),
    permissions: agent.permissions,
  };
  if (!refusal) {
    const identity = agent.identity.kind === 'sessionToken' ? agent.principal : assumedName(agent.identity);
    return {
      ...operation,
      success: true,
      using_master_key: agent.usesMasterKey,
      args: shownArguments(args),
      ...(identity !== null && { identity }),
    };
  }
  const { code, message, cause } = refusal;
  if (!refusal.opaque) return { ...operation, success: false, error: message, error_code: code };
  return {
    ...operation,
    type: 'security_violation',
    success: false,
    error_class: 'Refused',
    error_message: message,
    error_code: code,
    reason: cause ?? refusal.gate,
  };
}

function shownArguments(args: unknown): Record<string, unknown> {
  const names = auditedArgumentNames(args).slice(0, MAX_ARGUMENTS);
  return Object.fromEntries(names.map((name) => [name, shown((args as Record<string, unknown>)[name])]));
}

function shown(value: unknown): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? `(list of ${value.length})` : `(object of ${Object.keys(value).length})`;
}
