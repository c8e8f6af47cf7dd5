import type { ApplicationCode, AuthType, DenialKind, ErrorCode, Tier } from '#core';

interface EventBase {
  /** ISO 8601. */
  readonly at: string;
  /** Whether the action succeeded: true when it was permitted and done. */
  readonly success: boolean;
  /** The principal of the caller: the key of limits, sessions and tasks. Never a credential. */
  readonly principal?: string;
  readonly agent_name?: string;
  /** The name of the `auth` rule whose credential the caller showed, where it has one. */
  readonly key_name?: string;
  /** Tenant of the agent. */
  readonly tenant_id?: string | number;
  /** Correlation id of the request: its session, or the id that the application set. */
  readonly correlation_id?: string;
  /** `X-Request-Id` of the HTTP request, as its answer carries it. */
  readonly request_id?: string;
  /** Id of the trace, where traces are made. */
  readonly trace_id?: string;
}

/** A request with invalid or insufficient credentials. */
interface AuthenticationEvent extends EventBase {
  readonly type: 'authentication';
  /** Network address of the peer; behind a proxy, the address of the proxy. */
  readonly remote_address?: string;
  /** Reason, for the operator alone. Never a credential. */
  readonly cause?: string;
  /** Number of further events in the same second that have no record of their own. */
  readonly suppressed?: number;
}

/** A task that ended without a run: cancelled or given up. */
export interface TaskEndEvent extends EventBase {
  readonly type: 'task_end';
  /** Id of the task, as its client received it. */
  readonly task_id: string;
  /** Name of the tool that was called. */
  readonly tool: string;
  /** Code of the refusal or error. */
  readonly error_code?: ErrorCode | ApplicationCode;
  /** The gate that refused. */
  readonly gate?: string;
  /** Reason, for the operator alone. */
  readonly cause?: string;
}

/** An action of an operator. */
interface OperatorEvent extends EventBase {
  readonly type: 'operator_action';
  /** The action of the operator. */
  readonly action: string;
  /** The subject of the action. */
  readonly target?: string;
  /** Approvals: the reason that the approver gave, or why no approver decided. Operators: why they did it. */
  readonly reason?: string;
  /** True: what it was stored in did not confirm it, and it may count all the same. */
  readonly unconfirmed?: true;
}

/** A time in which records could not be kept and calls were refused. */
export interface OutageEvent extends EventBase {
  readonly type: 'outage';
  /** ISO 8601. */
  readonly since: string;
  /** Calls that were refused because of the outage. */
  readonly refused: number;
  /** Records that were not kept: events, and refusals of a caller that does not wait. */
  readonly dropped: number;
}

/** A configuration that is in force from now on, or that was read and is refused. */
export interface ConfigurationEvent extends EventBase {
  readonly type: 'configuration';
  /** How it came: at the start, because its file changed, or on request (a signal, or the application). */
  readonly by: 'start' | 'file' | 'request';
  /** Number of the configuration in force in this process, from 1 at the start. */
  readonly configuration_version: number;
  /** Version of the policy in force. */
  readonly policy_version: string;
  /** Version of the policy before it. */
  readonly previous_policy_version?: string;
  /** SHA-256 of the configuration file. */
  readonly file_digest?: string;
  /** Paths of the options that changed; never their values. */
  readonly changed?: readonly string[];
  /** Why it is refused. */
  readonly issues?: readonly string[];
  /** The policy in force, where it or the agents are others than before: options as they are given, without `maskingKey`. Text instead where it is too long. */
  readonly policy?: object | string;
  /** The agents in force, beside the policy: without their language models, and `***` in the place of a session. */
  readonly agents?: object | string;
}

/** An event of the chain of records itself (docs/operations/audit.md). */
interface ChainEvent extends EventBase {
  readonly type: 'chain_begin' | 'chain_anchor' | 'chain_end';
  /** Name of the process (`audit.replica`). */
  readonly replica?: string;
  /** Heads of earlier chains and of chains that run in parallel. */
  readonly heads?: readonly ChainHead[];
}

/** The latest record of a chain. */
export interface ChainHead {
  readonly chain: string;
  readonly seq: number;
  readonly hash: string;
}

/** A step of a change set. It holds no values. */
export interface ChangeSetEvent extends EventBase {
  readonly type: 'change_set';
  /** Id of the set. */
  readonly change_set: string;
  /** What happened to it. */
  readonly step:
    | 'proposed'
    | 'submitted'
    | 'approved'
    | 'applied'
    | 'conflict'
    | 'undone'
    | 'denied'
    | 'discarded'
    | 'expired';
  /** How the set came about: by writes of an agent, by one write that was made at once, or to take another set back. */
  readonly kind: 'proposed' | 'direct' | 'undo';
  /** Rows of the set, or of the conflict. */
  readonly rows: number;
  /** Names of their classes. */
  readonly classes: readonly string[];
  /** The principal who approved it. */
  readonly approver?: string;
  /** Id of the approval, when another person decided it. */
  readonly approval_id?: string;
  /** Ids of the sets that this one takes back. */
  readonly undoes?: readonly string[];
}

/** All records except those of calls and approvals. */
export type AuditEvent =
  | AuthenticationEvent
  | TaskEndEvent
  | OperatorEvent
  | ConfigurationEvent
  | ChangeSetEvent
  | OutageEvent
  | ChainEvent;

/** The agent of a call and its limits. Names only, never a value of a filter. */
export interface AuditedAgent extends AuditedLimits {
  /** Kind of the agent's identity. */
  readonly auth_type: AuthType;
  /** Whether the agent read with the master key, so that rights of users and roles did not apply. */
  readonly using_master_key: boolean;
  /** Permission level of the agent. */
  readonly permissions: Tier;
  /** Random id of the agent of this request. */
  readonly agent_id: string;
  /** 0 for the agent of a request, one more for each sub-agent below it. */
  readonly agent_depth: number;
  /** Name of the agent in the configuration. */
  readonly agent_name: string;
  /** The principal of the caller: the key of limits, sessions and tasks. Never a credential. */
  readonly principal: string;
  /** The user or role that the agent acts as; no credential proved it. */
  readonly identity?: string;
  /** The operator's name for the person or system behind the identity. */
  readonly impersonation_label?: string;
  /** The user whose session the agent uses, when the operator chose that user and not the caller. */
  readonly impersonated_user_id?: string;
  /** `agent_id` of the agent that created the sub-agent. */
  readonly parent_agent_id?: string;
  /** The name of the `auth` rule whose credential the caller showed, where it has one. */
  readonly key_name?: string;
  /** Tenant of the agent. */
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
  /** Names of the constrained fields by class, or by `default`. */
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
  /** Name of the tool that was called. */
  readonly tool: string;
  /** Names of the arguments, without the sensitive ones. */
  readonly args_keys: readonly string[];
  /** Name of the class that the call named, as it is stored (`_User`), also when it was refused. Absent when the call named none, or text that cannot be the name of a class. */
  readonly class_name?: string;
  /** Name of the database that holds that class, of those beside the first one. Absent: it is the first one, or the only one. */
  readonly class_database?: string;
  /** Id of the row that the call writes, with `audit.objects: id`. */
  readonly object_id?: string;
  /** Keyed digest of class and id of that row, with `audit.objects: digest`: equal for equal rows. */
  readonly object_digest?: string;
  /** Other classes that the call reached: by joins of a pipeline, includes, subqueries and pointers that it compared or wrote. Sorted, 64 at most, then `…`. Only classes that exist and that the class gate passed, never a name as the agent wrote it. Absent when there were none, and in records of earlier versions. */
  readonly joined_classes?: readonly string[];
  /** Keyed digest of the arguments. Equal arguments have equal digests; values cannot be guessed without the key. */
  readonly args_digest?: string;
  /** Version of the policy that decided. */
  readonly policy_version: string;
  /** Correlation id of the request: its session, or the id that the application set. */
  readonly correlation_id?: string;
  /** `X-Request-Id` of the HTTP request, as its answer carries it. */
  readonly request_id?: string;
  /** Id of the trace, where traces are made. */
  readonly trace_id?: string;
  /** Whether the action succeeded: true when it was permitted and done. */
  readonly success: boolean;
  /** Bytes of the result text. */
  readonly result_size?: number;
  /** Rows that the database returned; for an export, rows that were sent. */
  readonly rows?: number;
  /** Total milliseconds of the call's database operations. */
  readonly database_ms?: number;
  /** The principal who approved the call, when it needed an approval. */
  readonly approver?: string;
  /** Id of that approval, when another person decided it or was asked to: its record has the same. */
  readonly approval_id?: string;
  /** Id of the change set that the call added to, showed, submitted or applied. */
  readonly change_set?: string;
  /** Estimated tokens of the result for a model that reads it: a quarter of its bytes. */
  readonly est_input_tokens?: number;
  /** Estimated cost, in the currency of `tokenCostPerMillionInput`, when that is set. */
  readonly est_cost_usd?: number;
  /** Requests to the embeddings endpoint, when there were any. */
  readonly embed_calls?: number;
  /** Tokens of these requests. */
  readonly embed_tokens?: number;
  /** Cost, in the currency of `embedCostPerMillionTokens`, when that is set. */
  readonly embed_cost_usd?: number;
  /** The configured canary phrase that was found in the result. */
  readonly prompt_injection_phrase?: string;
  /** Duration in milliseconds; that of a call without the time for which it waited for a person or for the client's answer. */
  readonly duration_ms: number;
  /** Code of the refusal or error. */
  readonly error_code?: ErrorCode | ApplicationCode;
  /** Class name of the thrown value: `Refused` for a refusal by a rule, any other name for an internal error. */
  readonly error_class?: string;
  /** The gate that refused. */
  readonly gate?: string;
  /** The `kind` of the refusal. */
  readonly denial_kind?: DenialKind;
  /** Write calls: `unknown` when it is not known whether the write happened. Approvals: the decision; `unavailable` when no approver decided. */
  readonly outcome?: 'unknown';
  /** Reason, for the operator alone. It is never sent to the agent. */
  readonly cause?: string;
}

/** The record of one approval decision, also when nobody could decide. It holds no values. */
export interface ApprovalRecord {
  /** ISO 8601. */
  readonly at: string;
  /** Name of the tool that was called. */
  readonly tool: string;
  /** Name of the class of the call. */
  readonly class_name?: string;
  /** Id of the row that the call writes, with `audit.objects: id`. */
  readonly object_id?: string;
  /** Keyed digest of class and id of that row, with `audit.objects: digest`: equal for equal rows. */
  readonly object_digest?: string;
  /** Keyed digest of the arguments, as in the record of the call. */
  readonly args_digest?: string;
  /** Version of the policy that asked for the approval. */
  readonly policy_version?: string;
  /** The permission level that the call needs. */
  readonly effective_permission: Tier;
  /** The decision; `unavailable` when no approver decided. */
  readonly outcome: 'approve' | 'deny' | 'unavailable';
  /** Approvals: the reason that the approver gave, or why no approver decided. Operators: why they did it. */
  readonly reason?: string;
  /** The principal who decided; absent when no approver decided. */
  readonly approver?: string;
  /** The name of the `auth` rule whose credential the approver showed, where it has one. */
  readonly approver_key?: string;
  /** True: what it was stored in did not confirm it, and it may count all the same. */
  readonly unconfirmed?: true;
  /** `client`: the person at the calling client decided. `desk`: another person decided. */
  readonly via?: 'client' | 'desk';
  /** Id of the approval, when another person decided it or was asked to. */
  readonly approval_id?: string;
  /** The principal of the caller: the key of limits, sessions and tasks. Never a credential. */
  readonly principal: string;
  /** Name of the agent in the configuration. */
  readonly agent_name: string;
  /** The name of the `auth` rule whose credential the caller showed, where it has one. */
  readonly key_name?: string;
  /** Tenant of the agent. */
  readonly tenant_id?: string | number;
  /** Correlation id of the request: its session, or the id that the application set. */
  readonly correlation_id?: string;
  /** `X-Request-Id` of the HTTP request, as its answer carries it. */
  readonly request_id?: string;
  /** Id of the trace, where traces are made. */
  readonly trace_id?: string;
  /** Total duration in milliseconds. */
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
   * withheld. @param begun whether its handler ran. Default: yes
   */
  abstract record(entry: AuditRecord, begun?: boolean): void | Promise<void>;

  /** Default: ignored. */
  recordApproval(_entry: ApprovalRecord): void {}

  /** Records any other event. Default: ignored. */
  recordEvent(_event: AuditEvent): void {}
}
