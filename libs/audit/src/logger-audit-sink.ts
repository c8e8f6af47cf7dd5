import { Injectable, Logger } from '@nestjs/common';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink } from './audit-record.js';
import { oneLine } from './terminal-text.js';

/**
 * Audit records as JSON on the application's log: refusals (with their private cause) and results with a canary as
 * warnings, the rest at debug level, with one line at log level for every run under the master key or as an assumed
 * user or role.
 */
@Injectable()
export class LoggerAuditSink extends AuditSink {
  private readonly logger = new Logger('Audit');

  record(entry: AuditRecord): void {
    const quiet = entry.success && entry.prompt_injection_phrase === undefined;
    const level = quiet ? 'debug' : 'warn';
    if (Logger.isLevelEnabled(level)) this.logger[level](oneLine(JSON.stringify(entry)));
    const mode = entry.success ? modeOf(entry) : null;
    if (mode !== null && Logger.isLevelEnabled('log')) this.logger.log(oneLine(`${entry.tool} ${mode}`));
  }

  /** Always a warning: somebody let a call happen that may not happen by itself, or did not. */
  override recordApproval(entry: ApprovalRecord): void {
    this.logger.warn(oneLine(JSON.stringify({ type: 'approval', ...entry })));
  }

  /** What went well at debug level, anything else as a warning. */
  override recordEvent(event: AuditEvent): void {
    const level = event.success ? 'debug' : 'warn';
    if (Logger.isLevelEnabled(level)) this.logger[level](oneLine(JSON.stringify(event)));
  }
}

/** Reads that no signed-in user stands behind. */
function modeOf({ auth_type, identity }: AuditRecord): string | null {
  switch (auth_type) {
    case 'master_key':
      return 'mode=master_key';
    case 'acl_role':
      return `role=${identity}`;
    case 'acl_user':
      return `user=${identity}`;
    case 'session_token':
      return null;
  }
}
