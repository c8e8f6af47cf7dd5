import type { AuthType, DenialKind, ErrorCode, Tier } from '#agent';

/** One per outcome of a tool call, refusals included. Names only: never a value of an argument, a filter or a row. */
export interface AuditRecord {
  readonly at: string;
  readonly tool: string;
  /** Argument names minus the sensitive ones. */
  readonly args_keys: readonly string[];
  readonly auth_type: AuthType;
  readonly using_master_key: boolean;
  /** The user or role that the agent acts as without its being verified. */
  readonly identity?: string;
  readonly permissions: Tier;
  readonly agent_id: string;
  readonly agent_depth: number;
  readonly agent_name: string;
  readonly principal: string;
  readonly policy_version: string;
  readonly correlation_id?: string;
  readonly tenant_id?: string | number;
  readonly success: boolean;
  /** Bytes of the result text. */
  readonly result_size?: number;
  readonly duration_ms: number;
  readonly error_code?: ErrorCode;
  /** The gate that refused. */
  readonly gate?: string;
  readonly denial_kind?: DenialKind;
  /** Why, for the operator alone: never sent to the agent. */
  readonly cause?: string;
}

/** Where audit records go. A sink must not change the outcome of the call it hears of. */
export abstract class AuditSink {
  abstract record(entry: AuditRecord): void;
}

const SENSITIVE_ARGUMENTS = new Set([
  'where',
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
