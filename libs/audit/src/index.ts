export { AuditBook, type AuditBookParts } from './audit-book.js';
export * from './audit-event.js';
export * from './audit-record.js';
export { type AuditedAgent, auditedAgent, type AuditedLimits, filteredFields } from './audited-agent.js';
export { auditedRefusal } from './audited-refusal.js';
export { LoggerAuditSink } from './logger-audit-sink.js';
export { type OperationEntry, OperationLog } from './operation-log.js';
export { oneLine, terminalText, wellFormed } from './terminal-text.js';
export { ArgumentDigest } from './chain/argument-digest.js';
export { ChainRegister, SharedChainRegister } from './chain/chain-register.js';
export { RecordSeal, type Sealed } from './chain/record-seal.js';
export { AuditCollection } from './delivery/audit-collection.js';
export { BufferingKeeper } from './delivery/buffering-keeper.js';
export { CollectionDelivery } from './delivery/collection-delivery.js';
export { type FsyncPolicy, JsonLinesFile } from './delivery/json-lines-file.js';
export {
  KEEPER_STATES,
  type KeeperState,
  type RecordDelivery,
  type RecordKeeper,
} from './delivery/record-delivery.js';
export { RefusingKeeper } from './delivery/refusing-keeper.js';
export { SIGNATURE_HEADER, type SignedPost, signedPost } from './delivery/signed-post.js';
export { SpoolFile } from './delivery/spool-file.js';
export { WebhookDelivery } from './delivery/webhook-delivery.js';
export * from './search/audit-entry.js';
export * from './search/audit-matching.js';
export * from './search/audit-trail.js';
export { CollectionAuditTrail } from './search/collection-audit-trail.js';
export { RecentAuditTrail } from './search/recent-audit-trail.js';
export { FilesAuditTrail } from './search/files-audit-trail.js';
export { type ChainFault } from './verify/chain-fault.js';
export { collectionSource, fileSource, type RecordSource } from './verify/record-source.js';
export { type Verification, type VerifiedChain, verifyRecords } from './verify/verify-records.js';
