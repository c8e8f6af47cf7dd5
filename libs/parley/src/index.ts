/** What an application or a plugin builds tools, prompts, resources and class rules with (docs/plugins.md). */
export { type Agent, type CallContext, type ProgressUpdate, type Refusal, Refused, type Tier } from '#agent';
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
  ParseClass,
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
export { AuditSink } from '#audit';
export { Authenticator, type CredentialSource } from '#auth';
export type { AgentChoice, AgentChooser } from '#composition';
export { ConfigError, type ConfigFault } from '#config';
export { PrincipalDirectory, RecordReader, RecordSearcher, RecordWriter, SchemaCatalogue } from '#data';
export { Approver } from '#dispatcher';
export { ParleyHealthIndicator } from './module/health-indicator.js';
export { getParleyToken, Parley } from './module/parley.js';
export { ParleyModule } from './module/parley.module.js';
export type { ParleyModuleExtras, ParleyModuleOptions } from './module/parley-options.js';
export { AGENT_FACTORY } from './module/seams.js';
export { refusals } from './tool-refusals.js';
