import type { ErrorCode } from '#agent';

interface EventParts {
  /** ISO 8601. */
  readonly at: string;
  /** Whether it was done or permitted. */
  readonly success: boolean;
  /** Who: the key of limits, sessions and tasks. Never a credential. */
  readonly principal?: string;
  /** Of the configuration. */
  readonly agent_name?: string;
  /** Of the agent. */
  readonly tenant_id?: string | number;
  /** Of the request: its session, or what the application set. */
  readonly correlation_id?: string;
  /** Of the trace that it belongs to, where traces are made. */
  readonly trace_id?: string;
}

/** Somebody whose credentials were not recognised, or did not suffice. */
export interface AuthenticationEvent extends EventParts {
  readonly type: 'authentication';
  /** Whence the connection came: a proxy's address behind one. */
  readonly remote_address?: string;
  /** For the operator alone: never a credential. */
  readonly cause?: string;
  /** Others of the same second that were not written down one by one. */
  readonly suppressed?: number;
}

/** A task that ended without a run: cancelled, or given up. */
export interface TaskEndEvent extends EventParts {
  readonly type: 'task_end';
  /** As its client knows it. */
  readonly task_id: string;
  /** That was called. */
  readonly tool: string;
  /** How it was refused or failed. */
  readonly error_code?: ErrorCode;
  /** The gate that refused. */
  readonly gate?: string;
  /** Why, for the operator alone. */
  readonly cause?: string;
}

/** What an operator did: `action` in words of the part that offers it, `target` what it was done to. */
export interface OperatorEvent extends EventParts {
  readonly type: 'operator_action';
  /** What was done. */
  readonly action: string;
  /** What it was done to. */
  readonly target?: string;
}

/** The service could not keep records for a while, and refused calls. */
export interface OutageEvent extends EventParts {
  readonly type: 'outage';
  /** ISO 8601. */
  readonly since: string;
  /** Calls that were refused because of it. */
  readonly refused: number;
  /** Events besides calls that were not kept. */
  readonly dropped: number;
}

/** What the chain of records says of itself (docs/audit.md). */
export interface ChainEvent extends EventParts {
  readonly type: 'chain_begin' | 'chain_anchor' | 'chain_end';
  /** What the process is called (`audit.replica`). */
  readonly replica?: string;
  /** Heads of chains that came before or run beside this one. */
  readonly heads?: readonly ChainHead[];
}

/** The latest record of a chain. */
export interface ChainHead {
  readonly chain: string;
  readonly seq: number;
  readonly hash: string;
}

/** What is recorded besides calls and approvals. */
export type AuditEvent = AuthenticationEvent | TaskEndEvent | OperatorEvent | OutageEvent | ChainEvent;
