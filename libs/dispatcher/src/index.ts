export {
  AgentIntrospection,
  type DescribedAgent,
  type DescribedClass,
  type ModelFunction,
  type PermitAnswer,
  type PermitQuestion,
} from './agents/agent-introspection.js';
export { FilterNames } from './agents/filter-names.js';
export { MetadataAudit, type AuditedMetadata } from './agents/metadata-audit.js';
export { SUB_AGENT_CHECK, SubAgents } from './agents/sub-agents.js';
export * from './protocol.js';
export type { WireRequest } from './client-requests/question-wire.js';
export {
  CLIENT_ANSWER_OPTIONS,
  OPERATOR_KEYS,
  type RequestStateContent,
  processSecret,
  SealedText,
  StateKeys,
} from './client-requests/request-state.js';
export * from './dispatcher.module.js';
export * from './methods/call-tool.js';
export { RUNNING_CALLS_OPTIONS } from './calls/interceptors.js';
export { Kernel } from './kernel.js';
export { KERNEL_OPTIONS } from './methods/method.js';
export * from './methods/subscription-methods.js';
export * from './prompts/prompt.js';
export {
  Prompt as PromptMethod,
  PromptExplorer,
  type PromptOptions,
  PromptRegistry,
  SERVES_PARSE,
  listPromptNames,
  listPrompts,
} from './prompts/prompt-registry.js';
export * from './prompts/built-in-prompts.js';
export { readChangeSetUri } from './methods/resource-methods.js';
export * from './resources/resource-registry.js';
export * from './resources/resource-decorators.js';
export { RecordsSource } from './reads/read-accounts.js';
export * from './tasks/background-calls.js';
export * from './tasks/task-store.js';
export { describeTool, RenderedLists } from './methods/list-tools.js';
export {
  APPROVAL_LAPSED,
  type ApprovalPreview,
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  showChange,
  showToApprover,
} from './calls/approval.js';
export {
  type AfterToolCall,
  type AnnouncedCall,
  type BeforeToolCall,
  CallJournal,
  ToolCallbacks,
  type ToolCallError,
} from './calls/call-journal.js';
export { DataBudgets, MAX_RESULT_BYTES, meters, ResultLimit, TENANT_BUDGETS } from './calls/call-limits.js';
export {
  MethodExplorer,
  ParleyExecutionContext,
  ToolContext,
  ToolExplorer,
  toolsOf,
} from './calls/tool-context.js';
export { spendCall } from './calls/guards.js';
export type { ApplicationSteps, BeforeAndAfter } from './calls/application-steps.js';
export { ParleyToolRunner, ToolPipeline } from './calls/tool-pipeline.js';
export {
  recordedReads,
  recordedSearches,
  recordedWrites,
  RecordingSchemaWriter,
  RecordingStore,
  type StoreCommand,
} from './simulation/recording-store.js';
export { compareSurfaces } from './simulation/compare-surfaces.js';
export {
  judgeCases,
  type JudgedCase,
  type PolicyCase,
  readPolicyCases,
  createSimulatedFor,
} from './simulation/policy-case.js';
export {
  type AgentSurface,
  type ClassSurface,
  EVERY_FIELD,
  type SurfaceDependencies,
  describeSurface,
  type SurfaceChange,
  widens,
} from './simulation/policy-surface.js';
export {
  type SimulatedCall,
  Simulator,
  createSimulatedAgent,
  SimulatedApprover,
} from './simulation/simulation.js';
