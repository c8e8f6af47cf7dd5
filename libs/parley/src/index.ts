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
  type ProgressUpdate,
  Refused,
  refusals,
  SubAgentError,
  type SubAgentOptions,
  type Tier,
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
export { RateLimiters } from '#agent';
export {
  type ApprovalRecord,
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  type AuditRecord,
  AuditSink,
  AuditTrail,
} from '#audit';
export { Authenticator, type CredentialSource } from '#auth';
export {
  type AgentChoice,
  type AgentChooser,
  type CodeChoice,
  EmbeddedDatabase,
  type EmbeddedDatabaseOptions,
  loadWithPlugins,
  type RehearsalRoom,
} from '#composition';
export { ConfigError, type ConfigFault, type LoadedConfig } from '#config';
export {
  CachedPrincipalDirectory,
  type ParseRow,
  PrincipalDirectory,
  RecordReader,
  RecordSearcher,
  RecordWriter,
  SchemaCatalogue,
} from '#data';
export {
  type AgentSurface,
  Approver,
  type ClassSurface,
  type ClientLink,
  type ClientReply,
  ClientUnreachable,
  type DispatchContext,
  Kernel,
  type KernelReply,
  type Rehearsal,
  rehearsingAgent,
  surfaceOf,
  ToolCallbacks,
} from '#dispatcher';
export type { EnvironmentGates } from '#policy';
export { ParleyHealthIndicator } from './module/health-indicator.js';
export { getParleyToken, Parley } from './module/parley.js';
export { ParleyModule } from './module/parley.module.js';
export type { ParleyModuleExtras, ParleyModuleOptions } from './module/parley-options.js';
export { AGENT_FACTORY } from './module/seams.js';
