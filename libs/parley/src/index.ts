/** What an application or a plugin builds tools, prompts, resources and class rules with (docs/plugins.md). */
export { type Agent, type CallContext, type ProgressUpdate, Refused, refusals, type Tier } from '#agent';
export type { GovernedRecords, GovernedSearch } from '#data';
export {
  ProtocolFault,
  type ListedResource,
  type Prompt,
  type PromptMessage,
  PromptRegistry,
  type ResourceCall,
  type ResourceProvider,
  ResourceRegistry,
  type ResourceTemplate,
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
  ParseClass,
  Tool,
  type ToolCall,
  ToolContent,
  ToolDeclarationError,
  type ToolDefinition,
  type ToolOptions,
  ToolRegistry,
} from '#tools';
