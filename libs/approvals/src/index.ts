export { DecisionBody, decisionRefused, verdictOf } from './decision-body.js';
export { type ApprovalServiceResult, ApprovalService } from './approval-service.js';
export * from './approval-webhook.js';
export * from './recorded-approver.js';
export { ApprovalsModule } from './approvals.module.js';
export { approvedBy } from './chosen-approver.js';
