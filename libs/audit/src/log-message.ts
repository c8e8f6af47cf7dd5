import { inspect } from 'node:util';
import type { ApprovalRecord, AuditEvent, AuditRecord } from './audit-record.js';
import { oneLine } from './one-line.js';

/** The members of a line of the log. */
export type LogMembers = Readonly<Record<string, unknown>>;

/** A line of the log with members: `text name=value …` for people, a member each where lines are JSON. */
export class LogMessage {
  constructor(
    readonly text: string,
    readonly members: LogMembers,
  ) {}

  toString(): string {
    return `${oneLine(this.text)}${writeMembers(this.members)}`;
  }

  /** As the logger of Nest writes an object. */
  [inspect.custom](): string {
    return this.toString();
  }

  /** As a logger that writes JSON writes an object. */
  toJSON(): LogMembers {
    return { message: this.text, ...this.members };
  }
}

const BARE_VALUE = /^[\w.:/@+-]+$/;

/** ` name=value` for each member; a value with other characters is JSON. */
export function writeMembers(members: LogMembers): string {
  let line = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    const isBare = typeof value === 'string' && BARE_VALUE.test(value);
    line += ` ${name}=${isBare ? value : oneLine(JSON.stringify(value))}`;
  }
  return line;
}

/**
 * What an operator asks of a call. Its whole record is in the sinks.
 * @param servesParse false: there is no master key to name
 */
export function describeCall(record: AuditRecord, servesParse: boolean): LogMembers {
  const { success, agent_name, tenant_id, tool, class_name, error_code, gate, cause, rows } = record;
  const members: Record<string, unknown> = { tool, agent: agent_name, principal: record.principal };
  if (record.key_name !== undefined) members['key'] = record.key_name;
  if (class_name !== undefined) members['class'] = class_name;
  if (record.class_database !== undefined) members['database'] = record.class_database;
  members['outcome'] = success ? 'ok' : hasFailed(record) ? 'failed' : 'refused';
  if (error_code !== undefined) members['code'] = error_code;
  if (gate !== undefined) members['gate'] = gate;
  if (record.denial_kind !== undefined) members['denial_kind'] = record.denial_kind;
  if (cause !== undefined) members['cause'] = cause;
  if (record.prompt_injection_phrase !== undefined) members['canary'] = record.prompt_injection_phrase;
  members['ms'] = record.duration_ms;
  if (rows !== undefined) members['rows'] = rows;
  if (tenant_id !== undefined) members['tenant'] = tenant_id;
  Object.assign(members, describeMode(record, servesParse));
  if (record.request_id !== undefined) members['request_id'] = record.request_id;
  if (record.correlation_id !== undefined) members['correlation_id'] = record.correlation_id;
  if (record.trace_id !== undefined) members['trace_id'] = record.trace_id;
  return members;
}

/** As metrics count it. */
const hasFailed = ({ error_code: code }: AuditRecord) =>
  code === 'internal_error' || code === 'parse_error' || code === 'timeout';

/** By which rights a call ran that no signed-in user made. */
function describeMode({ auth_type, identity }: AuditRecord, servesParse: boolean): LogMembers {
  switch (auth_type) {
    case 'master_key':
      return servesParse ? { mode: 'master_key' } : {};
    case 'acl_role':
      return { role: identity };
    case 'acl_user':
      return { user: identity };
    case 'session_token':
      return {};
  }
}

/** A record as members, without its time: the line has one. */
export function withoutTime({ at: _at, ...members }: AuditRecord | ApprovalRecord | AuditEvent): LogMembers {
  return members;
}
