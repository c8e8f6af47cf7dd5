export type { AgentIdentity } from './agent-identity.js';
export type { AuditConfig, AuditSinkConfig, MongoSinkConfig } from './audit-config.js';
export {
  AgentOptionsError,
  assertChoice,
  assertChoiceOfLimits,
  assertSubAgentOptions,
} from './errors/agent-options.js';
export { nameFaults } from './errors/name-faults.js';
export type { DeclaredFilters } from './compile-agents.js';
export { ConfigError, type ConfigFault } from './config-faults.js';
export { CONFIG_SCHEMA } from './config-schema.js';
export type { AgentConfig, AuthRuleConfig, OAuthConfig } from './agent-config.js';
export type { ParleyConfig } from './config.js';
export type { EmbeddingsConfig, LlmConfig } from './model-config.js';
export type { ApprovalsConfig } from './operation-config.js';
export { DEFAULT_SERVER, type ServerConfig } from './server-config.js';
export type { DatabaseConfig, ParseConfig } from './store-config.js';
export { DOT_ENV_VARIABLES, dotEnv } from './dot-env.js';
export { environmentFiles, VARIABLES_FROM_FILES, withEnvironmentFiles } from './environment-files.js';
export { OVERLAID_VARIABLES, overlayOf } from './environment.js';
export type { LiveQueryConfig } from './live-query-config.js';
export {
  checkedConfig,
  configOf,
  configPath,
  type ConfigQuestion,
  loadConfig,
  type LoadedConfig,
} from './load-config.js';
export { resourceUrls } from './oauth-faults.js';
export type { LoggingConfig } from './observability-config.js';
export { configFile, readConfigFile, type ConfigReference, type Environment } from './read-config-file.js';
export { isSection } from './section.js';
export { isLoopbackHost, startFaults, type StartKind } from './start-gate.js';
export { llmOf } from './agent-llm.js';
