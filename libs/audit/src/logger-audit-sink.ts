import { ConsoleLogger, Injectable, Logger, type LogLevel } from '@nestjs/common';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink } from './audit-record.js';
import { describeCall, type LogMembers, LogMessage, withoutTime } from './log-message.js';

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
