export type { AgentIdentity } from './agent-identity.js';
export type { AuditConfig, AuditSinkConfig, MongoSinkConfig } from './audit-config.js';
export type { DeclaredFilters } from './compile-agents.js';
export { ConfigError, type ConfigFault } from './config-faults.js';
export { CONFIG_SCHEMA } from './config-schema.js';
export {
  DEFAULT_SERVER,
  type AgentConfig,
  type ApprovalsConfig,
  type AuthRuleConfig,
  type DatabaseConfig,
  type EmbeddingsConfig,
  type LlmConfig,
  type OAuthConfig,
  type ParleyConfig,
  type ParseConfig,
  type ServerConfig,
} from './config.js';
export { VARIABLES_FROM_FILES, withEnvironmentFiles } from './environment-files.js';
export { OVERLAID_VARIABLES, overlayOf } from './environment.js';
export type { LiveQueryConfig } from './live-query-config.js';
export { configOf, configPath, loadConfig, type LoadedConfig } from './load-config.js';
export { resourceUrls } from './oauth-faults.js';
export type { LoggingConfig } from './observability-config.js';
export { readConfigFile, type ConfigReference, type Environment } from './read-config-file.js';
export { isSection } from './section.js';
export { assertEnabled, assertMayStart, isLoopbackHost } from './start-gate.js';
