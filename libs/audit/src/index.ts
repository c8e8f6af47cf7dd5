export * from './audit-record.js';
export { LoggerAuditSink } from './logger-audit-sink.js';
export { oneLine } from './terminal-text.js';
