import { Injectable, Logger } from '@nestjs/common';
import { type AuditRecord, AuditSink } from './audit-record.js';
import { oneLine } from './terminal-text.js';

/** Audit records as JSON on the application's log: refusals as warnings with their private cause, the rest at debug level. */
@Injectable()
export class LoggerAuditSink extends AuditSink {
  private readonly logger = new Logger('Audit');

  record(entry: AuditRecord): void {
    const level = entry.success ? 'debug' : 'warn';
    if (Logger.isLevelEnabled(level)) this.logger[level](oneLine(JSON.stringify(entry)));
  }
}
