export {
  type Answered,
  ApprovalOffice,
  type ApprovalView,
  type DetailedApprovalView,
  type ApprovalServiceRefusal,
  type Verdict,
} from './approval-service.js';
export * from './approval-webhook.js';
export {
  ApproversInTurn,
  ClientApprover,
  StoredApprover,
  type StoredApproverOptions,
  type StoredApproverDependencies,
} from './approvers.js';
export * from './recorded-approver.js';
export { ApprovalsModule, type ApprovalsModuleOptions, approvedBy } from './approvals.module.js';
