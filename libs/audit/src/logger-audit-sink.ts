import { Injectable, Logger } from '@nestjs/common';
import { type ApprovalRecord, type AuditEvent, type AuditRecord, AuditSink } from './audit-record.js';
import { oneLine } from './terminal-text.js';

/**
 * Writes audit records as JSON to the application's log: refusals (with their private cause) and results with a
 * canary as warnings, all others at debug level. Every run with the master key or an assumed identity adds one line
 * at log level.
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

  /** Always a warning: the call needed an approval. */
  override recordApproval(entry: ApprovalRecord): void {
    this.logger.warn(oneLine(JSON.stringify({ type: 'approval', ...entry })));
  }

  /** Failures are warnings; all other events are written at debug level. */
  override recordEvent(event: AuditEvent): void {
    const level = event.success ? 'debug' : 'warn';
    if (Logger.isLevelEnabled(level)) this.logger[level](oneLine(JSON.stringify(event)));
  }
}

/** Describes a run without a signed-in user; null for one with a session. */
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
