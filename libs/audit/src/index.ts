export * from './audit-record.js';
export { type AuditedAgent, auditedAgent, type AuditedLimits, filteredFields } from './audited-agent.js';
export { LoggerAuditSink } from './logger-audit-sink.js';
export { type OperationEntry, OperationLog } from './operation-log.js';
export { oneLine, terminalText, wellFormed } from './terminal-text.js';
