export * from './approval-office.js';
export * from './approval-webhook.js';
export * from './approvers-in-turn.js';
export { type ApprovalView, type DetailedApprovalView } from './case-view.js';
export * from './client-approver.js';
export { DeskApprover, type DeskApproverOptions, type DeskApproverParts } from './desk-approver.js';
export * from './recorded-approver.js';
