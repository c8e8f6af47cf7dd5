import {
  cutText,
  type Agent,
  type AgentDefinition,
  readAssumedName,
  authType,
  type CallApproval,
  canonicalClassName,
  isClassName,
  type NameFilter,
  type Refusal,
} from '#core';
import {
  type AuditedAgent,
  type AuditedLimits,
  type AuditRecord,
  type EmbeddingSpend,
} from './audit-record.js';
import { isoNow } from './audit-log.js';
import type { ArgumentDigest } from './chain/audit-chain.js';

/** A record in the making: its members are set in the order in which sinks write them. */
type Draft<Record> = { -readonly [Member in keyof Record]?: Record[Member] };

/** A call with its outcome, as far as its record describes them. */
export interface RecordedCall {
  readonly tool: string;
  readonly args: unknown;
  /** Null: the record has no digest of the arguments. */
  readonly digest: ArgumentDigest | null;
  readonly agent: Agent;
  readonly policyVersion: string;
  /** Name of the database that holds a class; undefined: the first one, or the only one. */
  readonly findDatabase?: (className: string) => string | undefined;
  /** Currency per million tokens; null: no costs are recorded. */
  readonly prices: { readonly input: number | null; readonly embedding: number | null };
  readonly correlationId?: string | undefined;
  readonly requestId?: string | undefined;
  readonly traceId?: string | undefined;
  /** Of the result text; null: refused or failed. */
  readonly resultBytes: number | null;
  /** What it used of the database. Absent: it did not reach it. */
  readonly use?: { readonly rows: number; readonly databaseTime: number } | undefined;
  /** Existing classes that it reached from others, which its agent may read. */
  readonly joined?: ReadonlySet<string> | undefined;
  readonly approval?: CallApproval | undefined;
  readonly changeSet?: string | undefined;
  /** The row that it wrote, of its result. */
  readonly writtenId?: unknown;
  readonly embedding?: EmbeddingSpend | undefined;
  /** The operator's phrase that was found in the result. */
  readonly phrase?: string | undefined;
  readonly milliseconds: number;
  readonly refusal?: Refusal | undefined;
  readonly errorClass: string;
}

/** The record of one call. It is one object, made once and given to every listener. */
export function callRecord(call: RecordedCall): AuditRecord {
  const { tool, args, digest, prices, resultBytes, use, refusal } = call;
  const record: Draft<AuditRecord> = {
    at: isoNow(),
    tool: cutText(tool, 128),
    args_keys: listArgumentNames(args),
  };
  const className = readClassName(args);
  if (className !== undefined) {
    record.class_name = className;
    const database = call.findDatabase?.(className);
    if (database !== undefined) record.class_database = database;
  }
  if (digest)
    Object.assign(record, digest.nameObject(className, readWrittenObject(tool, args, call.writtenId)));
  if (call.joined?.size) {
    const joined = listJoinedClasses(call.joined, className);
    if (joined.length > 0) record.joined_classes = joined;
  }
  if (digest) record.args_digest = digest.of(tool, args);
  describeAgent(record, call.agent);
  record.policy_version = call.policyVersion;
  if (call.correlationId !== undefined) record.correlation_id = call.correlationId;
  if (call.requestId !== undefined) record.request_id = call.requestId;
  if (call.traceId !== undefined) record.trace_id = call.traceId;
  record.success = resultBytes !== null;
  if (resultBytes !== null) Object.assign(record, resultCost(resultBytes, prices.input));
  if (use) {
    record.rows = use.rows;
    record.database_ms = hundredths(use.databaseTime);
  }
  if (call.approval?.by !== undefined) record.approver = call.approval.by;
  if (call.approval?.id !== undefined) record.approval_id = call.approval.id;
  if (call.changeSet !== undefined) record.change_set = call.changeSet;
  if (call.embedding) Object.assign(record, computeEmbeddingCost(call.embedding, prices.embedding));
  if (call.phrase !== undefined) record.prompt_injection_phrase = call.phrase;
  record.duration_ms = hundredths(call.milliseconds);
  if (refusal) Object.assign(record, toAuditedRefusal(refusal, call.errorClass));
  return record as AuditRecord;
}

function hundredths(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
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

/** The members of a record that describe the cost of embeddings; empty when there were none. */
function computeEmbeddingCost(
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

/** @param errorClass class of the thrown error; a returned refusal has the class of a thrown one */
export function toAuditedRefusal(
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

const MAX_NAMES = 64;
const MAX_NAME = 128;

/** The names of the arguments that a record may show. */
export function listArgumentNames(args: unknown): string[] {
  if (args === null || typeof args !== 'object' || Array.isArray(args)) return [];
  const names: string[] = [];
  for (const name of Object.keys(args)) {
    if (SENSITIVE_ARGUMENTS.has(name)) continue;
    names.push(cutText(name, MAX_NAME));
    if (names.length === MAX_NAMES) break;
  }
  return names;
}

/**
 * The stored name of the class that the arguments of a call name. Only text that can be the name of a class, which bounds
 * it: anything else could be a value. A class that the agent may not use or that does not exist is named as well, because
 * the operator must see what was asked.
 */
export function readClassName(args: unknown): string | undefined {
  if (args === null || typeof args !== 'object') return undefined;
  const name = (args as { readonly class_name?: unknown }).class_name;
  return isClassName(name) ? canonicalClassName(name) : undefined;
}

/** Tools that write one row. */
const ROW_WRITES = new Set(['create_object', 'update_object', 'delete_object', 'call_method']);
const MAX_ID = 256;

/**
 * The id of the row that a call writes; undefined: it writes none, or many.
 * @param created that of its result, where the arguments name none
 */
export function readWrittenObject(tool: string, args: unknown, created?: unknown): string | undefined {
  if (!ROW_WRITES.has(tool) || args === null || typeof args !== 'object') return undefined;
  const { object_id: id = created } = args as { readonly object_id?: unknown };
  return typeof id === 'string' && id !== '' && id.length <= MAX_ID ? id : undefined;
}

/** Names of one record. */
const MAX_JOINED = 64;
/** No name of a class. */
const CUT_MARK = '…';

/** @param called has a member of its own */
function listJoinedClasses(names: ReadonlySet<string>, called: string | undefined): string[] {
  const sorted = [...names].filter((name) => name !== called).sort();
  return sorted.length > MAX_JOINED ? [...sorted.slice(0, MAX_JOINED), CUT_MARK] : sorted;
}

/** Replaces the field names of a filter that is a function: they are known only per call. */
const ASKED_PER_CALL = '(function)';

const known = new WeakMap<AgentDefinition, AuditedLimits>();

export function toAuditedAgent(agent: Agent): AuditedAgent {
  const described: Draft<AuditedAgent> = {};
  describeAgent(described, agent);
  return described as AuditedAgent;
}

/** Sets the members in the order in which sinks write them. */
function describeAgent(record: Draft<AuditedAgent>, agent: Agent): void {
  const { identity, definition, impersonationLabel, impersonatedUserId, parent, tenantId } = agent;
  const assumed = readAssumedName(identity);
  record.auth_type = authType(identity);
  record.using_master_key = agent.usesMasterKey;
  record.permissions = agent.permissions;
  record.agent_id = agent.agentId;
  record.agent_depth = agent.depth;
  record.agent_name = definition.name;
  record.principal = agent.principal;
  if (assumed !== null) record.identity = assumed;
  if (impersonationLabel !== null) record.impersonation_label = impersonationLabel;
  if (impersonatedUserId !== null) record.impersonated_user_id = impersonatedUserId;
  if (parent) record.parent_agent_id = parent.agentId;
  if (agent.keyName !== null) record.key_name = agent.keyName;
  if (tenantId !== null) record.tenant_id = tenantId;
  Object.assign(record, readAuditedLimits(definition));
}

function readAuditedLimits(definition: AgentDefinition): AuditedLimits {
  let limits = known.get(definition);
  if (!limits) known.set(definition, (limits = Object.freeze(collectLimits(definition))));
  return limits;
}

function collectLimits(definition: AgentDefinition): AuditedLimits {
  const filters = listFilteredFields(definition);
  return {
    ...lists('classes', definition.classes),
    ...lists('tools', definition.tools),
    ...lists('methods', definition.methods),
    ...(filters && { filters }),
  };
}

function lists(option: string, { only, except }: NameFilter): Record<string, readonly string[]> {
  return {
    ...(only && { [`${option}_only`]: [...only].sort() }),
    ...(except && { [`${option}_except`]: [...except].sort() }),
  };
}

/** The fields that an agent's row filters constrain, by class; null without filters. */
export function listFilteredFields(
  definition: AgentDefinition,
): Readonly<Record<string, readonly string[]>> | null {
  const fields = new Map<string, Set<string>>();
  for (let level: AgentDefinition | null = definition; level; level = level.outer) {
    for (const [className, entry] of level.filters) {
      const names = fields.get(className) ?? new Set<string>();
      for (const name of typeof entry === 'function' ? [ASKED_PER_CALL] : Object.keys(entry)) names.add(name);
      fields.set(className, names);
    }
  }
  if (fields.size === 0) return null;
  const sorted = [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([className, names]) => [className, [...names].sort()]));
}
