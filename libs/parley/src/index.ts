/** What an application or a plugin builds tools, prompts, resources and class rules with (docs/plugins.md). */
export {
  type Agent,
  type AgentShapeOptions,
  type CallContext,
  DENIAL_KINDS,
  type DenialKind,
  ERROR_CODES,
  type ErrorCode,
  type Gate,
  GATES,
  type LogEntry,
  type NameFilterOptions,
  type ProgressUpdate,
  type Refusal,
  Refused,
  SubAgentError,
  type SubAgentFault,
  type SubAgentOptions,
  type Tier,
  type ToolFilterOptions,
} from '#agent';
export type { GovernedRecords, GovernedSearch } from '#data';
export {
  ParleyExecutionContext,
  ProtocolFault,
  type ListedResource,
  type Prompt as PromptDefinition,
  type PromptArgument,
  type PromptCall,
  type PromptMessage,
  PromptMethod as Prompt,
  type PromptOptions,
  PromptRegistry,
  type ResourceCall,
  type ResourceProvider,
  ResourceRegistry,
  type ResourceTemplate,
  SubAgents,
} from '#dispatcher';
export {
  AgentCanonicalFilter,
  AgentDescription,
  AgentFields,
  AgentHidden,
  AgentJoinFields,
  AgentLargeFields,
  AgentMasks,
  AgentMethod,
  AgentTenantScope,
  AgentVisible,
  type ContentBlock,
  defineTool,
  type MethodCall,
  ParseClass,
  type RowWritingCall,
  Tool,
  type ToolCall,
  ToolContent,
  ToolDeclarationError,
  type ToolDefinition,
  type ToolOptions,
  type ToolOutcome,
  ToolRunner,
  type ToolHandler,
  type ToolRegistration,
  ToolRegistry,
  type ValueSchema,
} from '#tools';
/** For applications that take Parley in (docs/module.md). */
export {
  type RateLimit,
  RateLimiters,
  type RateUsage,
  type RateVerdict,
  SlidingRateLimiter,
  Unauthorized,
} from '#agent';
export {
  type ApprovalRecord,
  type AuditEntry,
  type AuditEvent,
  type AuditPage,
  type AuditQuery,
  AuditQueryError,
  type AuditRecord,
  AuditSink,
  AuditTrail,
} from '#audit';
export { AuthenticationUnavailable, Authenticator, type CredentialSource, InsufficientScope } from '#auth';
export { openSharedState, SharedState, SharedStateUnavailable } from '#cluster';
export {
  type AdmissionRequest,
  type AgentChoice,
  type AgentChooser,
  type CodeChoice,
  EmbeddedDatabase,
  type EmbeddedDatabaseOptions,
  loadWithPlugins,
  type RehearsalRoom,
  type UngovernedData,
  type UngovernedQuery,
  type UngovernedRecords,
} from '#composition';
export { ConfigError, type ConfigFault, type LoadedConfig } from '#config';
export {
  type AggregateQuery,
  CachedPrincipalDirectory,
  ClassSchemas,
  type CountQuery,
  type FacetCounts,
  type FacetQuery,
  type FindQuery,
  type OperationContext,
  type ParseRow,
  PrincipalDirectory,
  type QueryPlan,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  type RelatedQuery,
  SchemaCatalogue,
  type SearchHit,
  type SessionOwner,
  type StoreCall,
  StoreError,
  type StoreErrorCode,
  type TextSearchQuery,
  type VectorSearchQuery,
} from '#data';
export {
  type AgentSurface,
  type ApprovalDecision,
  type ApprovalRequest,
  Approver,
  type ClassSurface,
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  type DispatchContext,
  Kernel,
  type KernelReply,
  type Rehearsal,
  ToolCallbacks,
} from '#dispatcher';
export { openTaskQueue, type TaskJob, TaskQueue } from '#jobs';
export {
  type ClassSchema,
  type EnvironmentGates,
  type FieldSchema,
  type IndexSchema,
  type SchemaSnapshot,
} from '#policy';
export { ParleyHealthIndicator } from './module/health-indicator.js';
export { getParleyToken, Parley } from './module/parley.js';
export { ParleyModule } from './module/parley.module.js';
export type { ParleyEndpoints, ParleyModuleExtras, ParleyModuleOptions } from './module/parley-options.js';
export { AGENT_FACTORY } from './module/seams.js';
export { refusals } from './tool-refusals.js';
