import type { DenialKind, ErrorCode, Refusal, Tier } from '#core';
import type { AuditedAgent } from './audited-agent.js';

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
  /** Whence the connection came: a proxy's address behind one. */
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
  /** The class of what was thrown: `Refused` for a rule that said no, anything else for a fault. */
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

/** The members of a record that describe the cost of reading a result of that size. */
export function resultCost(
  bytes: number,
  costPerMillionTokens: number | null,
): Pick<AuditRecord, 'result_size' | 'est_input_tokens' | 'est_cost_usd'> {
  const tokens = Math.floor(bytes / 4);
  return {
    result_size: bytes,
    est_input_tokens: tokens,
    ...(costPerMillionTokens !== null && {
      est_cost_usd: Math.round(tokens * costPerMillionTokens) / 1_000_000,
    }),
  };
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
  /** `client`: whoever sits at the calling client. `desk`: another person. */
  readonly via?: 'client' | 'desk';
  /** Of the desk. */
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

/** The members of a record that describe the cost of embeddings; empty when there were none. */
export function embeddingCost(
  { calls, tokens }: EmbeddingSpend,
  costPerMillionTokens: number | null,
): Pick<AuditRecord, 'embed_calls' | 'embed_tokens' | 'embed_cost_usd'> {
  if (calls === 0) return {};
  return {
    embed_calls: calls,
    embed_tokens: tokens,
    ...(costPerMillionTokens !== null && {
      embed_cost_usd: Math.round(tokens * costPerMillionTokens) / 1_000_000,
    }),
  };
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

const SENSITIVE_ARGUMENTS = new Set([
  'where',
  'filter',
  'vector_filter',
  'pipeline',
  'session_token',
  'password',
  'secret',
  'token',
  'auth_data',
  'authData',
  'recovery_codes',
  'api_key',
  'master_key',
  'acl_user',
  'acl_role',
  'ids',
  'keys',
  'include',
  'arguments',
]);

export function auditedArgumentNames(args: unknown): string[] {
  if (args === null || typeof args !== 'object' || Array.isArray(args)) return [];
  return Object.keys(args)
    .filter((name) => !SENSITIVE_ARGUMENTS.has(name))
    .slice(0, 64)
    .map((name) => name.slice(0, 128));
}

/** @param errorClass class of the thrown error; a returned refusal has the class of a thrown one */
export function auditedRefusal(
  { code, gate, details, cause }: Refusal,
  errorClass: string,
): Pick<AuditRecord, 'error_code' | 'error_class' | 'gate' | 'denial_kind' | 'outcome' | 'cause'> {
  return {
    error_code: code,
    error_class: errorClass,
    gate,
    ...(details?.kind && { denial_kind: details.kind }),
    ...(details?.outcome && { outcome: details.outcome }),
    ...(cause !== undefined && { cause }),
  };
}
