import { IntrinsicException } from '@nestjs/common';

/** Stable codes of failures inside the tool layer (docs/reference/refusals.md). They cross the wire as `parse.error_code`. */
export const ERROR_CODES = [
  'access_denied',
  'permission_denied',
  'tool_filtered',
  'approval_denied',
  'invalid_argument',
  'invalid_query',
  'pointer_shape_mismatch',
  'parse_error',
  'not_found',
  'conflict',
  'timeout',
  'rate_limited',
  'cancelled',
  'not_implemented',
  'security_blocked',
  'audit_unavailable',
  'internal_error',
] as const;
/** One of `ERROR_CODES`. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Codes of what failed, through no fault of the caller. */
const FAILURES: ReadonlySet<string> = new Set<ErrorCode>(['parse_error', 'timeout', 'internal_error']);

/** Whether a call failed, and the same one may succeed later; any other code refuses it. */
export const isFailure = (code: string | undefined): boolean => code !== undefined && FAILURES.has(code);

/** How a call ended, as metrics and the log of calls count it: what a person denied is no sign of a fault. */
export function nameOutcome({
  success,
  error_code: code,
  denial_kind: kind,
}: {
  readonly success: boolean;
  readonly error_code?: string;
  readonly denial_kind?: string;
}): 'ok' | 'denied' | 'failed' | 'refused' {
  if (success) return 'ok';
  if (kind === 'denied_by_person') return 'denied';
  return isFailure(code) ? 'failed' : 'refused';
}

/** A code that a tool of the application returns, as records and metrics name it. */
export type ApplicationCode = `application:${string}`;

const APPLICATION = 'application:';
const OWN_CODE = /^[A-Za-z0-9_.-]{1,64}$/;

/** The code of a failure that a tool names; null: it can be no code. */
export function readErrorCode(named: unknown): ErrorCode | ApplicationCode | null {
  const known = ERROR_CODES.find((code) => code === named);
  if (known) return known;
  return typeof named === 'string' && OWN_CODE.test(named) ? `${APPLICATION}${named}` : null;
}

/** A code as agents receive it: that of an application as its tool named it. */
export const toSentCode = (code: ErrorCode | ApplicationCode): string =>
  code.startsWith(APPLICATION) ? code.slice(APPLICATION.length) : code;

/** The kind of the access rule that refused; the `kind` member of `parse.details`. */
export const DENIAL_KINDS = [
  'hidden_class',
  'class_filter',
  'misconfigured_class',
  'clp_denied',
  'field_denied',
  'storage_form_field_ref',
  'denied_field_key',
  'protected_field_ref',
  'masked_field',
  'tenant_scope',
  'missing_tenant_scope',
  'agent_value',
  'row_filter',
  'read_hooks',
  'tenant_join_denied',
  'unenforceable_scope',
  'atlas_facet_filter_unsafe',
  'budget',
  'answer_size',
  'cross_database',
  'read_only_database',
  'denied_by_person',
] as const;
/** One of `DENIAL_KINDS`. */
export type DenialKind = (typeof DENIAL_KINDS)[number];

/** Every gate: a check that refuses, or a step of a call (docs/reference/refusals.md#gates). Not sent to agents. */
export const GATES = [
  'suspension',
  'rate_limit',
  'running_calls',
  'database_share',
  'budget',
  'embedding_budget',
  'audit',
  'tool_filter',
  'method_filter',
  'mode_ceiling',
  'mutations',
  'tier',
  'env_gates',
  'approval',
  'client',
  'cancellation',
  'timeout',
  'identity',
  'class',
  'class_permissions',
  'class_permission',
  'database',
  'system_class',
  'tenant',
  'agent_filter',
  'joins',
  'facets',
  'filters',
  'fields',
  'arguments',
  'where',
  'pipeline',
  'collscan',
  'searchable',
  'master_atlas',
  'embeddings',
  'availability',
  'route',
  'store',
  'data',
  'canary',
  'answer_size',
  'result_size',
  'handler',
  'protocol',
  'application',
  'subscription',
  'tool',
  'before_callbacks',
  'task',
] as const;
/** One of `GATES`. */
export type Gate = (typeof GATES)[number];

/** Structured part of a refusal; only populated members are sent. */
export interface RefusalDetails {
  readonly kind?: DenialKind;
  readonly denied_field?: string;
  /** At most 20 names. */
  readonly allowed_fields?: readonly string[];
  readonly suggested_rewrite?: string;
  /** Of a write: it is unknown whether it happened. Absent: it did not. */
  readonly outcome?: 'unknown';
}

/**
 * Why a call is refused. The agent receives `message`; `cause` is logged and never leaves the process. An `opaque` refusal
 * is sent as JSON-RPC -32602 `Invalid params` and nothing more.
 */
export interface Refusal {
  /** Stable, for programs. */
  readonly code: ErrorCode | ApplicationCode;
  /** The gate that refused, as named in docs/contributing/life-of-a-call.md. */
  readonly gate: string;
  /** The text for the agent. */
  readonly message: string;
  /** Structured details, for programs. Default none. */
  readonly details?: RefusalDetails;
  /** What a tool of the application adds, sent as `details` are. Default none. */
  readonly applicationDetails?: Readonly<Record<string, unknown>>;
  /** Seconds. */
  readonly retryAfter?: number;
  /** Sent without any reason. Default false. */
  readonly opaque?: boolean;
  /** Extra members of the failed result body (a refused collection scan adds `refused`, `reason`, `suggestion`). */
  readonly body?: Readonly<Record<string, unknown>>;
  /** Sent as text alone, without `_meta`: the code is for the audit record. */
  readonly wordsOnly?: boolean;
  /** Private: the reason, for the operator's log. */
  readonly cause?: string;
}

const STRAY_ROWS = ['foreign', 'missing', 'foreign and missing'] as const;

/** Why an id matched no row of the agent's tenant; for the audit record alone. */
export type MissingRowReason = (typeof STRAY_ROWS)[number];

/** Whether a lookup by id was refused because the tenant has no such row: because of stored data, not of a policy rule. */
export function isMissingTenantRow({ gate, details, cause }: Refusal): boolean {
  return gate === 'tenant' && details?.kind === 'tenant_scope' && STRAY_ROWS.some((stray) => stray === cause);
}

/**
 * Throws a refusal from code that cannot return it: recursive translators, guards, tool handlers. An `IntrinsicException`,
 * so that Nest does not log it as an error. It has no stack: a refusal is an answer, and a stack costs more than its gate.
 */
export class Refused extends IntrinsicException {
  /** A constant, so that it is the same in two copies of the package. */
  override readonly name = 'Refused';
  constructor(
    /** What the agent receives. */
    readonly refusal: Refusal,
  ) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(refusal.message);
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** @throws Refused when a gate returned a refusal */
export function orThrow(refusal: Refusal | null | undefined): void {
  if (refusal) throw new Refused(refusal);
}

/** The caller's credentials were not recognised: HTTP 401, JSON-RPC -32001, never a reason. */
export class Unauthorized extends IntrinsicException {
  /** A constant, so that it is the same in two copies of the package. */
  override readonly name = 'Unauthorized';
  constructor(
    /** Why, for the log only. */
    override readonly cause?: string,
  ) {
    super('Unauthorized');
  }
}
