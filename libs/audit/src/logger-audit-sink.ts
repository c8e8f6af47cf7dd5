import { ConsoleLogger, Injectable, Logger, type LogLevel } from '@nestjs/common';
import { nameOutcome } from '#core';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink } from './audit-record.js';
import { type LogMembers, LogMessage } from './log-message.js';

/** What the logger of the application writes, in the versions of NestJS that Parley runs in. */
class LogLevels extends Logger {
  static isEnabled(level: LogLevel): boolean {
    const logger = this.staticInstanceRef;
    if (logger instanceof ConsoleLogger) return logger.isLevelEnabled(level);
    // NestJS 11 calls every level disabled while none are set; any that are set enable the highest.
    return Logger.isLevelEnabled(level) || !Logger.isLevelEnabled('fatal');
  }
}

/**
 * Writes a line for each call to the application's log, and for events. Calls that were refused or failed (with their private
 * cause), results with a canary, denied approvals and failed events are warnings. At debug level a line has the members of the record as well.
 */
@Injectable()
export class LoggerAuditSink extends AuditSink {
  private readonly logger = new Logger('Audit');

  /** @param servesParse false over plain collections alone, where no call has a master key */
  constructor(private readonly servesParse = true) {
    super();
  }

  record(entry: AuditRecord): void {
    const quiet = entry.success && entry.prompt_injection_phrase === undefined;
    const level = quiet ? 'log' : 'warn';
    if (!LogLevels.isEnabled(level)) return;
    const call = describeCall(entry, this.servesParse);
    const members = LogLevels.isEnabled('debug') ? { ...this.describe(entry), ...call } : call;
    this.logger[level](new LogMessage('call', members));
  }

  private describe(entry: AuditRecord): LogMembers {
    const { auth_type, using_master_key, ...others } = withoutTime(entry);
    const isMaster = auth_type === 'master_key' && !this.servesParse;
    return isMaster ? others : { ...others, auth_type, using_master_key };
  }

  override recordApproval(entry: ApprovalRecord): void {
    this.logger[entry.outcome === 'approve' ? 'log' : 'warn'](new LogMessage('approval', withoutTime(entry)));
  }

  /** An event that succeeded is written at debug level. */
  override recordEvent(event: AuditEvent): void {
    const level = event.success ? 'debug' : 'warn';
    if (LogLevels.isEnabled(level)) this.logger[level](new LogMessage(event.type, withoutTime(event)));
  }
}

/**
 * What an operator asks of a call. Its whole record is in the sinks.
 * @param servesParse false: there is no master key to name
 */
function describeCall(record: AuditRecord, servesParse: boolean): LogMembers {
  const { agent_name, tenant_id, tool, class_name, error_code, gate, cause, rows } = record;
  const members: Record<string, unknown> = { tool, agent: agent_name, principal: record.principal };
  if (record.key_name !== undefined) members['key'] = record.key_name;
  if (class_name !== undefined) members['class'] = class_name;
  if (record.class_database !== undefined) members['database'] = record.class_database;
  members['outcome'] = nameOutcome(record);
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
function withoutTime({ at: _at, ...members }: AuditRecord | ApprovalRecord | AuditEvent): LogMembers {
  return members;
}
