export {
  APPROVAL_OPTIONS,
  ApprovalService,
  type ApprovalServiceResult,
  DecisionBody,
  decisionRefused,
  type ListedApprovals,
  toVerdict,
} from './approval-service.js';
export type { ApprovalView, DetailedApprovalView } from './approval-views.js';
export * from './approval-webhook.js';
export * from './chosen-approver.js';
export { ApprovalRoutesModule, ApprovalsModule } from './approvals.module.js';
export { provideApprover } from './chosen-approver.js';
