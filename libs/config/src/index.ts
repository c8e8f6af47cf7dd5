export {
  AgentOptionsError,
  assertChoice,
  assertChoiceOfLimits,
  assertSubAgentOptions,
} from './agent-options.js';
export { type DeclaredFilters, nameErrors } from './compile-agents.js';
export { CONFIG_SCHEMA, configurationSchema, databaseSections, type ParleyConfig } from './config.js';
export {
  ConfigError,
  type ConfigIssue,
  describeIssue,
  describeUnreadable,
  locateError,
} from './config-error.js';
export {
  dotEnv,
  type Environment,
  environmentFiles,
  OVERLAID_VARIABLES,
  findOverlay,
  findOverlays,
  VARIABLES_FROM_FILES,
  withEnvironmentFiles,
} from './environment.js';
export { consoleBase, consoleIssuer, fourEyesDoubt, isFixed } from './checks/operators-checks.js';
export { type ConsoleOidcConfig } from './sections/operators.js';
export {
  checkConfig,
  type ConfigCheckOptions,
  readConfig,
  configPath,
  loadConfig,
  type LoadedConfig,
  locateIssues,
} from './load-config.js';
export {
  type ConfigFile,
  configFile,
  type ConfigReference,
  PROCESS_VARIABLE,
  processNumber,
  readYaml,
} from './read-config-file.js';
export { adviseListening, toListeningError } from './listening.js';
export type { AgentConfig } from './sections/agents.js';
export type { AuthRuleConfig } from './sections/auth.js';
export { listPlaces } from './checks/audit-checks.js';
export {
  type AuditConfig,
  type AuditSinkConfig,
  type MongoSinkConfig,
  listAuditPaths,
} from './sections/audit.js';
export { describeEnd, type EndingKey, findEndingKeys, type ListedKey, listKeys } from './list-keys.js';
export { findLlm } from './checks/models-checks.js';
export { type LlmConfig } from './sections/models.js';
export type { LoggingConfig } from './sections/observability.js';
export { processCount, startErrors, type StartKind } from './checks/server-checks.js';
export { isLoopbackHost } from './sections/server.js';
export type { DatabaseConfig, LiveQueryConfig, ParseConfig } from './sections/stores.js';
export {
  agentsWithMasterPosture,
  findSecurityWarnings,
  hasPlainClassesAlone,
  logSecurityWarnings,
} from './security-warnings.js';
export { ConfigVersions, type ConfigVersion, mustReturn } from './versions/config-versions.js';
export { readOtherThan, recordAdopted, writeEffective } from './versions/configuration-record.js';
export { type FurtherDatabaseConfig, readTenantDatabases } from './sections/databases.js';
export { readServers } from './sections/stores.js';
export { computeDigest, ConfigWatch, NEEDS_RESTART, Reloader } from './versions/reloader.js';
