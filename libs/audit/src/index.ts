export { AuditBook, type AuditRecorderOptions } from './audit-recorder.js';
export {
  type ApprovalRecord,
  auditedArgumentNames,
  auditedRefusal,
  type AuditEvent,
  type AuditRecord,
  AuditSink,
  type AuthenticationEvent,
  type ChainEvent,
  type ChainHead,
  embeddingCost,
  type EmbeddingSpend,
  type OperatorEvent,
  type OutageEvent,
  resultCost,
  type TaskEndEvent,
} from './audit-record.js';
export { type AuditedAgent, auditedAgent, type AuditedLimits, filteredFields } from './audited-agent.js';
export { LoggerAuditSink } from './logger-audit-sink.js';
export { type OperationEntry, OperationLog } from './operation-log.js';
export { oneLine, terminalText, wellFormed } from './terminal-text.js';
export { ArgumentDigest } from './chain/canonical-json.js';
export { ChainAnchorStore, SharedChainAnchorStore } from './chain/chain-anchors.js';
export { RecordSeal, type Sealed } from './chain/audit-chain.js';
export { AuditCollection, CollectionAuditTrail, CollectionDelivery } from './delivery/audit-collection.js';
export { BufferingSinkWriter, RefusingSinkWriter } from './delivery/sink-writers.js';
export { type FsyncPolicy, JsonLinesFile, SpoolFile } from './delivery/record-files.js';
export {
  SINK_STATES,
  type SinkState,
  type RecordDelivery,
  type SinkWriter,
} from './delivery/record-delivery.js';
export {
  SIGNATURE_HEADER,
  type SignedPost,
  signedPost,
  WebhookDelivery,
} from './delivery/webhook-delivery.js';
export {
  type AuditEntry,
  type AuditEntryType,
  type AuditOrder,
  type AuditPage,
  type AuditPosition,
  type AuditQuery,
  AuditQueryError,
  AuditTrail,
  cursorAfter,
  limitOf,
  matching,
  membersAsked,
  momentOf,
  newestFirst,
  pageOf,
  readCursor,
  RecentAuditTrail,
} from './audit-trail.js';
export { collectionSource, FilesAuditTrail, fileSource, type RecordSource } from './verify/record-source.js';
export {
  type ChainIssue,
  type Verification,
  type VerifiedChain,
  verifyRecords,
} from './verify/verify-records.js';
export { AuditModule, type AuditModuleOptions, type AuditSinkOptions } from './audit.module.js';
