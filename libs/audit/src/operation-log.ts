import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  type Agent,
  assumedName,
  type AuthType,
  authType,
  type ErrorCode,
  type Refusal,
  type Tier,
} from '#core';
import { ExpiringMap, processClock } from '#state';
import { auditedArgumentNames } from './call-record.js';

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
  /** Without sensitive arguments. Long text is cut; lists and objects are replaced by their size. */
  readonly args: Readonly<Record<string, unknown>>;
  /** The assumed user or role. */
  readonly identity?: string;
}

/** A call that was refused or failed. */
interface FailureEntry extends Operation {
  readonly success: false;
  readonly error: string;
  readonly error_code: ErrorCode;
}

/** A call that violated a rule; the reason is for the operator only. */
interface SecurityEntry extends Operation {
  readonly type: 'security_violation';
  readonly success: false;
  readonly error_class: string;
  readonly error_message: string;
  readonly error_code: ErrorCode;
  readonly reason: string;
}

/** A call in the operation log: successful, failed or a violation. */
export type OperationEntry = SuccessEntry | FailureEntry | SecurityEntry;

export interface FinishedCall {
  readonly tool: string;
  readonly args: unknown;
  readonly agent: Agent;
  /** Absent when the call succeeded. */
  readonly refusal?: Refusal;
}

/** The calls that an operation log keeps at the start. */
export const MAX_LOG_SIZE = Symbol('MAX_LOG_SIZE');

const DEFAULT_SIZE = 1000;
const MAX_TEXT = 256;
const MAX_ARGUMENTS = 32;

/** An entry whose time is written when the log is read. */
type Untimed =
  Omit<SuccessEntry, 'timestamp'> | Omit<FailureEntry, 'timestamp'> | Omit<SecurityEntry, 'timestamp'>;

interface Logged {
  readonly owner: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly entry: Untimed;
}

/**
 * The latest calls of this process, for its operator. A full log drops the oldest call of the principal that has most
 * entries, so that a busy principal does not evict others. Agents cannot read it.
 */
@Injectable()
export class OperationLog {
  private entries: ExpiringMap<Logged>;
  private recorded = 0;

  /** @param maxLogSize entries kept. Default 1000 */
  constructor(@Optional() @Inject(MAX_LOG_SIZE) private maxLogSize = DEFAULT_SIZE) {
    this.entries = emptyLog(maxLogSize);
  }

  /** Changes the capacity. Existing entries are kept as far as they fit. */
  resize(maxLogSize: number): void {
    const resized = emptyLog(maxLogSize);
    if (maxLogSize === this.maxLogSize) return;
    const kept = this.logged();
    this.entries = resized;
    this.maxLogSize = maxLogSize;
    for (const one of kept) this.keep(one);
  }

  /** Adds a call. A full log drops the oldest call of the principal that has most entries. */
  record(call: FinishedCall): void {
    this.keep({ owner: `principal:${call.agent.principal}`, at: Date.now(), entry: entryOf(call) });
  }

  /** Oldest first. */
  all(): readonly OperationEntry[] {
    return this.logged().map(({ at, entry: { tool, ...others } }) => {
      const entry = { tool, timestamp: new Date(at).toISOString(), ...others };
      return entry as OperationEntry;
    });
  }

  /** Forgets every call. */
  clear(): void {
    this.entries = emptyLog(this.maxLogSize);
  }

  private keep(one: Logged): void {
    this.recorded += 1;
    this.entries.set(String(this.recorded), one, Infinity, { owner: one.owner });
  }

  private logged(): Logged[] {
    return this.entries
      .latest(this.entries.size)
      .map(([, one]) => one)
      .reverse();
  }
}

function emptyLog(maxLogSize: number): ExpiringMap<Logged> {
  if (!Number.isSafeInteger(maxLogSize) || maxLogSize < 1)
    throw new TypeError('maxLogSize: expected a whole number, one or more');
  return new ExpiringMap(maxLogSize, processClock);
}

function entryOf({ tool: written, args, agent, refusal }: FinishedCall): Untimed {
  const tool = written.slice(0, 128);
  const auth_type = authType(agent.identity);
  const { agentId: agent_id, permissions } = agent;
  if (!refusal) {
    const identity = agent.identity.kind === 'sessionToken' ? agent.principal : assumedName(agent.identity);
    return {
      tool,
      agent_id,
      auth_type,
      permissions,
      success: true,
      using_master_key: agent.usesMasterKey,
      args: shownArguments(args),
      ...(identity !== null && { identity }),
    };
  }
  const { code, message, cause } = refusal;
  if (!refusal.opaque)
    return { tool, agent_id, auth_type, permissions, success: false, error: message, error_code: code };
  return {
    tool,
    agent_id,
    auth_type,
    permissions,
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
