export { DecisionBody } from './decision-body.js';
export { type Answered, ApprovalService, type ApprovalServiceRefusal } from './approval-service.js';
export * from './approval-webhook.js';
export * from './recorded-approver.js';
export { ApprovalsModule } from './approvals.module.js';
export { approvedBy } from './chosen-approver.js';
