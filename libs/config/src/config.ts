import type { PolicyConfig } from '#policy';
import type { SubscriptionOptions } from '#subscriptions';
import type { AgentConfig, AuthRuleConfig } from './agent-config.js';
import type { AuditConfig } from './audit-config.js';
import type { ExportConfig, TaskConfig } from './lasting-work-config.js';
import type { LiveQueryConfig } from './live-query-config.js';
import type { EmbeddingsConfig, LlmConfig } from './model-config.js';
import type { LoggingConfig, MetricsConfig, TracesConfig } from './observability-config.js';
import type { ApprovalsConfig, ConsoleConfig, ReloadConfig } from './operation-config.js';
import type { ServerConfig } from './server-config.js';
import type { DatabaseConfig, ParseConfig, RedisConfig } from './store-config.js';

/** The whole configuration with every default filled in (docs/configuration.md). */
export interface ParleyConfig {
  readonly server: ServerConfig;
  readonly database: DatabaseConfig;
  readonly parse: ParseConfig;
  readonly redis: RedisConfig;
  readonly reload: ReloadConfig;
  /** From `parse`. */
  readonly liveQuery: LiveQueryConfig;
  readonly subscriptions: Required<SubscriptionOptions>;
  readonly tasks: TaskConfig;
  readonly exports: ExportConfig;
  readonly agents: Readonly<Record<string, AgentConfig>>;
  readonly auth: readonly AuthRuleConfig[];
  readonly approvals: ApprovalsConfig;
  readonly console: ConsoleConfig;
  readonly audit: AuditConfig;
  readonly policy: PolicyConfig;
  /** Null: texts are not embedded. */
  readonly embeddings: EmbeddingsConfig | null;
  readonly llm: LlmConfig;
  readonly traces: TracesConfig;
  readonly metrics: MetricsConfig;
  readonly logging: LoggingConfig;
}
