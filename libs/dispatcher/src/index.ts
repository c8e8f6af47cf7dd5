export { knownCapabilities } from './client-capabilities.js';
export {
  AgentIntrospection,
  type DescribedAgent,
  type IntrospectionParts,
} from './agents/agent-introspection.js';
export { type DescribedClass } from './agents/describe-agent.js';
export { FilterNames } from './agents/filter-names.js';
export { MetadataAudit, type AuditedMetadata } from './agents/metadata-audit.js';
export { SubAgents } from './agents/sub-agents.js';
export { type PermitAnswer, type PermitQuestion } from './agents/would-permit.js';
export { digestOf } from './asks/canonical-json.js';
export { InputRounds, type InputRoundsParts } from './asks/input-rounds.js';
export type { WireRequest } from './asks/question-wire.js';
export { type AskedSoFar, RequestStateSeal } from './asks/request-state.js';
export { processSecret, SealedText, StateKeys } from './asks/sealed-text.js';
export * from './client-link.js';
export * from './dispatch-context.js';
export * from './dispatcher.module.js';
export * from './envelope-keys.js';
export * from './header-values.js';
export * from './json-object.js';
export * from './kernel.js';
export * from './list-changes.js';
export * from './resource-subscriptions.js';
export * from './kernel-reply.js';
export * from './prompts/conventions.js';
export * from './prompts/prompt.js';
export * from './prompts/prompt-arguments.js';
export * from './prompts/prompt-registry.js';
export * from './prompts/relation-diagram.js';
export * from './protocol-fault.js';
export * from './protocol-versions.js';
export { ReadAccounts } from './reads/read-accounts.js';
export * from './records-source.js';
export * from './resources/resource-provider.js';
export * from './resources/resource-registry.js';
export * from './response-limit.js';
export * from './tasks/background-calls.js';
export * from './tasks/continues-as-task.js';
export * from './tasks/task-desk.js';
export * from './tasks/task-responses.js';
export * from './tasks/tasks-extension.js';
export * from './warning-log.js';
export { describeTool } from './methods/tool-descriptor.js';
export type { ApprovalPreview } from './tool-pipeline/approval-preview.js';
export { type ApprovalDecision, type ApprovalRequest, Approver } from './tool-pipeline/approver.js';
export { CallJournal } from './tool-pipeline/call-journal.js';
export { DataBudgets } from './tool-pipeline/data-budgets.js';
export { MethodExplorer } from './tool-pipeline/method-explorer.js';
export { TOOL_GUARDS, TOOL_INTERCEPTORS } from './tool-pipeline/parley-pipeline.js';
export { ParleyToolRunner } from './tool-pipeline/parley-tool-runner.js';
export { meters } from './tool-pipeline/meters.js';
export { RunningCalls } from './tool-pipeline/running-calls.js';
export { spendCall } from './tool-pipeline/spend-call.js';
export { TOOL_CONTEXT_TYPE, type ToolExecution, toolExecutionOf } from './tool-pipeline/tool-execution.js';
export {
  type AfterToolCall,
  type AnnouncedCall,
  type BeforeToolCall,
  ToolCallbacks,
  type ToolCallError,
} from './tool-pipeline/tool-callbacks.js';
export { ParleyExecutionContext } from './tool-pipeline/parley-execution-context.js';
export { ToolContext } from './tool-pipeline/tool-context.js';
export { ToolExplorer, toolsOf } from './tool-pipeline/tool-explorer.js';
export { Prompt as PromptMethod, type PromptOptions } from './prompts/prompt.decorator.js';
export { PromptExplorer, promptsOf } from './prompts/prompt-explorer.js';
export type { ToolPipeline } from './tool-pipeline/tool-pipeline.js';
export type { InjectedLimit, PassedGate } from './rehearsal/gate-trace.js';
export { judgeCase, type PolicyCase, readPolicyCases } from './rehearsal/policy-case.js';
export { type AgentSurface, type ClassSurface, EVERY_FIELD, surfaceOf } from './rehearsal/policy-surface.js';
export {
  RecordingSchemaWriter,
  RecordingSearcher,
  RecordingStore,
  RecordingWriter,
  type StoreCommand,
} from './rehearsal/recording-store.js';
export { type Rehearsal, Rehearser } from './rehearsal/rehearsal.js';
export { rehearsingAgent } from './rehearsal/rehearsing-agent.js';
export { RehearsingApprover } from './rehearsal/rehearsing-approver.js';
export { type SurfaceChange, surfaceChanges, widens } from './rehearsal/surface-changes.js';
