export {
  type Answered,
  ApprovalOffice,
  type ApprovalView,
  type DetailedApprovalView,
  type OfficeRefusal,
  type Verdict,
} from './approval-service.js';
export * from './approval-webhook.js';
export {
  ApproversInTurn,
  ClientApprover,
  DeskApprover,
  type DeskApproverOptions,
  type DeskApproverParts,
} from './approvers.js';
export * from './recorded-approver.js';
export { ApprovalsModule, type ApprovalsModuleOptions, approvedBy } from './approvals.module.js';
