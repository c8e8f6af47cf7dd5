export {
  ApprovalService,
  type ApprovalServiceResult,
  DecisionBody,
  decisionRefused,
  verdictOf,
  type ApprovalView,
  type DetailedApprovalView,
} from './approval-service.js';
export * from './approval-webhook.js';
export * from './chosen-approver.js';
export { ApprovalsModule } from './approvals.module.js';
export { approvedBy } from './chosen-approver.js';
