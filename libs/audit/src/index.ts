export { AuditRecorder, RecentAuditTrail, toStoredForm } from './audit-recorder.js';
export {
  isoNow,
  type LogMembers,
  LogMessage,
  oneLine,
  terminalText,
  wellFormed,
  writeMembers,
} from './audit-log.js';
export {
  type ApprovalRecord,
  type AuditEvent,
  type ChangeSetEvent,
  type AuditRecord,
  AuditSink,
  type ChainHead,
  type ConfigurationEvent,
  type EmbeddingSpend,
  type TaskEndEvent,
} from './audit-record.js';
export {
  toAuditedAgent,
  listArgumentNames,
  readClassName,
  toAuditedRefusal,
  callRecord,
  listFilteredFields,
  readWrittenObject,
  resultCost,
} from './call-record.js';
export { MAX_LOG_SIZE, type OperationEntry, OperationLog } from './operation-log.js';
export { ArgumentDigest, RecordSeal, type SealedRecord } from './chain/audit-chain.js';
export { AuditCollection, CollectionAuditTrail } from './delivery/audit-collection.js';
export { FileAuditTrail, filesOfSink } from './delivery/file-audit-trail.js';
export { type FsyncPolicy } from './delivery/record-files.js';
export { AuditStoreError, errorName, SINK_STATES, type SinkState } from './delivery/record-delivery.js';
export { SIGNATURE_HEADER, postSigned } from './delivery/sink-writers.js';
export {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  AuditQueryError,
  AuditTrail,
  readLimit,
  membersAsked,
  parseMoment,
  takePage,
  readCursor,
} from './audit-trail.js';
export { collectionSource, FilesAuditTrail, fileSource, type RecordSource } from './verify/record-source.js';
export { type ChainIssue, type Verification, verifyRecords } from './verify/verify-records.js';
export { AUDIT_OPTIONS, AuditModule, type AuditModuleOptions } from './audit.module.js';
export { FileHeld, holdFile, holderOfFile } from './delivery/file-lock.js';
export { examineFile, FileProblem } from './delivery/file-problem.js';
