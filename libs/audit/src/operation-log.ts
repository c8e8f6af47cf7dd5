import { Inject, Injectable, Optional } from '@nestjs/common';
import {
  cutText,
  type Agent,
  type ApplicationCode,
  authType,
  type AuthType,
  type ErrorCode,
  readAssumedName,
  type Refusal,
  setOwn,
  type Tier,
} from '#core';
import { listArgumentNames } from './call-record.js';

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
  readonly error_code: ErrorCode | ApplicationCode;
}

/** A call that violated a rule; the reason is for the operator only. */
interface SecurityEntry extends Operation {
  readonly type: 'security_violation';
  readonly success: false;
  readonly error_class: string;
  readonly error_message: string;
  readonly error_code: ErrorCode | ApplicationCode;
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
  readonly principal: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly entry: Untimed;
}

/** A logged call in the list of its principal. */
interface Kept extends Logged {
  /** Its place among the calls of all principals. */
  readonly number: number;
  /** The next call of the same principal. */
  next: Kept | null;
}

/** The calls of one principal. */
interface Calls {
  oldest: Kept;
  latest: Kept;
  count: number;
}

/**
 * The latest calls of this process, for its operator. A full log drops the oldest call of the principal that has most
 * entries, so that a busy principal does not evict others. Agents cannot read it.
 */
@Injectable()
export class OperationLog {
  private readonly calls = new Map<string, Calls>();
  private size = 0;
  private recorded = 0;

  /** @param maxLogSize entries kept. Default 1000 */
  constructor(@Optional() @Inject(MAX_LOG_SIZE) private maxLogSize = DEFAULT_SIZE) {
    assertSize(maxLogSize);
  }

  /** Changes the capacity. Existing entries are kept as far as they fit. */
  resize(maxLogSize: number): void {
    assertSize(maxLogSize);
    if (maxLogSize === this.maxLogSize) return;
    const kept = this.listLogged();
    this.clear();
    this.maxLogSize = maxLogSize;
    for (const one of kept) this.keep(one);
  }

  /** Adds a call. A full log drops the oldest call of the principal that has most entries. */
  record(call: FinishedCall): void {
    this.keep({ principal: call.agent.principal, at: Date.now(), entry: createEntry(call) });
  }

  /** Oldest first. */
  all(): readonly OperationEntry[] {
    return this.listLogged().map(({ at, entry: { tool, ...others } }) => {
      const entry = { tool, timestamp: new Date(at).toISOString(), ...others };
      return entry as OperationEntry;
    });
  }

  /** Forgets every call. */
  clear(): void {
    this.calls.clear();
    this.size = 0;
  }

  private keep({ principal, at, entry }: Logged): void {
    if (this.size >= this.maxLogSize) this.dropOldest(this.busiest(principal));
    this.recorded += 1;
    this.size += 1;
    const kept: Kept = { principal, at, entry, number: this.recorded, next: null };
    const calls = this.calls.get(principal);
    if (!calls) {
      this.calls.set(principal, { oldest: kept, latest: kept, count: 1 });
      return;
    }
    calls.latest.next = kept;
    calls.latest = kept;
    calls.count += 1;
  }

  /** The principal that has most calls. @param coming the principal of the call to be added, which is counted already */
  private busiest(coming: string): string | undefined {
    let most = 0;
    let found: string | undefined;
    for (const [principal, { count }] of this.calls) {
      const has = principal === coming ? count + 1 : count;
      if (has > most) [most, found] = [has, principal];
    }
    return found;
  }

  private dropOldest(principal: string | undefined): void {
    const calls = principal === undefined ? undefined : this.calls.get(principal);
    if (!calls || principal === undefined) return;
    const { oldest } = calls;
    this.size -= 1;
    if (!oldest.next) {
      this.calls.delete(principal);
      return;
    }
    calls.oldest = oldest.next;
    calls.count -= 1;
    // A dropped call that is not collected yet must not keep those behind it.
    oldest.next = null;
  }

  /** Oldest first. */
  private listLogged(): Logged[] {
    const all: Kept[] = [];
    for (const { oldest } of this.calls.values())
      for (let one: Kept | null = oldest; one; one = one.next) all.push(one);
    return all.sort((a, b) => a.number - b.number);
  }
}

function assertSize(maxLogSize: number): void {
  if (!Number.isSafeInteger(maxLogSize) || maxLogSize < 1)
    throw new TypeError('maxLogSize: expected a whole number, one or more');
}

function createEntry({ tool: written, args, agent, refusal }: FinishedCall): Untimed {
  const tool = cutText(written, 128);
  const auth_type = authType(agent.identity);
  const { agentId: agent_id, permissions } = agent;
  if (!refusal) {
    const identity =
      agent.identity.kind === 'sessionToken' ? agent.principal : readAssumedName(agent.identity);
    return {
      tool,
      agent_id,
      auth_type,
      permissions,
      success: true,
      using_master_key: agent.usesMasterKey,
      args: shortenArguments(args),
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

function shortenArguments(args: unknown): Record<string, unknown> {
  const members: Record<string, unknown> = {};
  for (const name of listArgumentNames(args).slice(0, MAX_ARGUMENTS)) {
    let value = (args as Record<string, unknown>)[name];
    if (typeof value === 'string' && value.length > MAX_TEXT) value = `${cutText(value, MAX_TEXT)}…`;
    else if (Array.isArray(value)) value = `(list of ${value.length})`;
    else if (typeof value === 'object' && value !== null) value = `(object of ${Object.keys(value).length})`;
    setOwn(members, name, value);
  }
  return members;
}
