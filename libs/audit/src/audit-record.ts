import type { AuthType, DenialKind, ErrorCode, Tier } from '#core';

interface EventBase {
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

/** A request with invalid or insufficient credentials. */
interface AuthenticationEvent extends EventBase {
  readonly type: 'authentication';
  /** Address of the peer: behind a proxy that of the proxy. */
  readonly remote_address?: string;
  /** For the operator alone: never a credential. */
  readonly cause?: string;
  /** Others of the same second that were not written down one by one. */
  readonly suppressed?: number;
}

/** A task that ended without a run: cancelled or given up. */
export interface TaskEndEvent extends EventBase {
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

/** An action of an operator. */
interface OperatorEvent extends EventBase {
  readonly type: 'operator_action';
  /** What was done. */
  readonly action: string;
  /** What it was done to. */
  readonly target?: string;
}

/** A time in which records could not be kept and calls were refused. */
export interface OutageEvent extends EventBase {
  readonly type: 'outage';
  /** ISO 8601. */
  readonly since: string;
  /** Calls that were refused because of it. */
  readonly refused: number;
  /** Events besides calls that were not kept. */
  readonly dropped: number;
}

/** An event of the chain of records itself (docs/operations/audit.md). */
interface ChainEvent extends EventBase {
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

/** All records except those of calls and approvals. */
export type AuditEvent = AuthenticationEvent | TaskEndEvent | OperatorEvent | OutageEvent | ChainEvent;

/** The agent of a call and its limits. Names only, never a value of a filter. */
export interface AuditedAgent extends AuditedLimits {
  /** What kind of identity it has. */
  readonly auth_type: AuthType;
  /** Whether rights of users and roles did not apply. */
  readonly using_master_key: boolean;
  /** Its tier. */
  readonly permissions: Tier;
  /** Random: of the agent of this request. */
  readonly agent_id: string;
  /** 0 for the agent of a request. */
  readonly agent_depth: number;
  /** Of the configuration. */
  readonly agent_name: string;
  /** Who: the key of limits, sessions and tasks. Never a credential. */
  readonly principal: string;
  /** The user or role that the agent acts as without its being verified. */
  readonly identity?: string;
  /** What the operator calls whoever is behind the identity. */
  readonly impersonation_label?: string;
  /** The user whose session the operator, not the caller, chose. */
  readonly impersonated_user_id?: string;
  /** Of the agent that delegated. */
  readonly parent_agent_id?: string;
  /** Of the agent. */
  readonly tenant_id?: string | number;
}

/**
 * The lists of an agent's filters; a list is present when its filter is set. Those of a sub-agent include its
 * parents'.
 */
export interface AuditedLimits {
  /** `classes.only` of the agent. */
  readonly classes_only?: readonly string[];
  /** `classes.except` of the agent. */
  readonly classes_except?: readonly string[];
  /** `tools.only` of the agent. */
  readonly tools_only?: readonly string[];
  /** `tools.except` of the agent. */
  readonly tools_except?: readonly string[];
  /** `methods.only` of the agent. */
  readonly methods_only?: readonly string[];
  /** `methods.except` of the agent. */
  readonly methods_except?: readonly string[];
  /** Class, or `default`, to the names of the constrained fields. */
  readonly filters?: Readonly<Record<string, readonly string[]>>;
}

/** Requests to the embeddings endpoint that a call caused. */
export interface EmbeddingSpend {
  readonly calls: number;
  readonly tokens: number;
}

/**
 * The record of one tool call, also of a refused one. It holds names only, never a value of an argument, a filter or
 * a row.
 */
export interface AuditRecord extends AuditedAgent {
  /** ISO 8601. */
  readonly at: string;
  /** That was called. */
  readonly tool: string;
  /** Argument names minus the sensitive ones. */
  readonly args_keys: readonly string[];
  /** Keyed digest of the arguments: equal arguments have equal ones, and nobody without the key can try values. */
  readonly args_digest?: string;
  /** Of the policy that decided. */
  readonly policy_version: string;
  /** Of the request: its session, or what the application set. */
  readonly correlation_id?: string;
  /** Of the trace that the call belongs to, where traces are made. */
  readonly trace_id?: string;
  /** Whether it was done or permitted. */
  readonly success: boolean;
  /** Bytes of the result text. */
  readonly result_size?: number;
  /** Rows that the database handed out, or, of an export, that left. */
  readonly rows?: number;
  /** Milliseconds that the operations of the call took at the database, added up. */
  readonly database_ms?: number;
  /** Who let the call happen, when it needed somebody. */
  readonly approver?: string;
  /** What the result costs whoever reads it to a model: a quarter of its bytes. */
  readonly est_input_tokens?: number;
  /** In the currency of `tokenCostPerMillionInput`, when that is set. */
  readonly est_cost_usd?: number;
  /** Requests to the embeddings endpoint, when there were any. */
  readonly embed_calls?: number;
  /** Tokens of those requests. */
  readonly embed_tokens?: number;
  /** In the currency of `embedCostPerMillionTokens`, when that is set. */
  readonly embed_cost_usd?: number;
  /** The operator's phrase that was found in the result. */
  readonly prompt_injection_phrase?: string;
  /** Milliseconds in all. */
  readonly duration_ms: number;
  /** How it was refused or failed. */
  readonly error_code?: ErrorCode;
  /** The class of what was thrown: `Refused` for a refusal by a rule, anything else for an internal error. */
  readonly error_class?: string;
  /** The gate that refused. */
  readonly gate?: string;
  /** The `kind` of the refusal. */
  readonly denial_kind?: DenialKind;
  /** Of a call that was to write: `unknown`, when nothing says whether it did. Of an approval: what was decided; `unavailable`: nobody could or would. */
  readonly outcome?: 'unknown';
  /** Why, for the operator alone: never sent to the agent. */
  readonly cause?: string;
}

/** The record of one approval decision, also when nobody could decide. It holds no values. */
export interface ApprovalRecord {
  /** ISO 8601. */
  readonly at: string;
  /** That was called. */
  readonly tool: string;
  /** The tier that the call needs. */
  readonly effective_permission: Tier;
  /** What was decided; `unavailable`: nobody could or would. */
  readonly outcome: 'approve' | 'deny' | 'unavailable';
  /** In the words of whoever decided. */
  readonly reason?: string;
  /** The principal who decided; absent when nobody did. */
  readonly approver?: string;
  /** `client`: the person at the calling client. `desk`: another person. */
  readonly via?: 'client' | 'desk';
  /** Of the approval that another person decided. */
  readonly approval_id?: string;
  /** Who asked. */
  readonly principal: string;
  /** Of the configuration. */
  readonly agent_name: string;
  /** Of the agent. */
  readonly tenant_id?: string | number;
  /** Of the request: its session, or what the application set. */
  readonly correlation_id?: string;
  /** Of the trace that it belongs to, where traces are made. */
  readonly trace_id?: string;
  /** Since it was asked. */
  readonly duration_ms: number;
}

/** Receives audit records. A sink must not change the outcome of the call that it records. */
export abstract class AuditSink {
  /**
   * Called before a call runs. A number refuses the call, because its record could not be kept; it is the number of
   * seconds after which the call may be repeated. Default: null, the call is admitted.
   */
  admit(): number | null {
    return null;
  }

  /**
   * Records one call. @returns a promise when the answer must wait for the record; if it rejects, the result is
   * withheld
   */
  abstract record(entry: AuditRecord): void | Promise<void>;

  /** Default: ignored. */
  recordApproval(_entry: ApprovalRecord): void {}

  /** Records any other event. Default: ignored. */
  recordEvent(_event: AuditEvent): void {}
}
