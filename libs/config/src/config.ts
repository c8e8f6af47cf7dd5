import type { PolicyConfig } from '#policy';
import { documentedSchemaOf, schemaOf } from './schema/class-schema.js';
import {
  ArrayUnique,
  IsArray,
  IsString,
  IsTexts,
  ListOf,
  MapOf,
  Matches,
  Nested,
  Nullable,
  Option,
} from './schema/option.js';
import type { SchemaNode } from './schema/schema-node.js';
import { AgentConfig } from './sections/agents.js';
import { AuditConfig } from './sections/audit.js';
import { type AuthRuleConfig, AuthRuleOptions } from './sections/auth.js';
import { ExportConfig, ReloadConfig, SubscriptionsConfig, TaskConfig } from './sections/background.js';
import { EmbeddingsConfig, LlmConfig } from './sections/models.js';
import { LoggingConfig, MetricsConfig, TracesConfig } from './sections/observability.js';
import { ApprovalsConfig, ConsoleConfig } from './sections/operators.js';
import { PolicyOptions } from './sections/policy.js';
import { ServerConfig } from './sections/server.js';
import { DatabaseConfig, type LiveQueryConfig, ParseConfig, RedisConfig } from './sections/stores.js';

/** The whole configuration with every default filled in (docs/configuration.md). */
export interface ParleyConfig {
  readonly server: ServerConfig;
  readonly database: DatabaseConfig;
  readonly parse: ParseConfig;
  readonly redis: RedisConfig;
  readonly reload: ReloadConfig;
  /** From `parse`. */
  readonly liveQuery: LiveQueryConfig;
  readonly subscriptions: SubscriptionsConfig;
  readonly tasks: TaskConfig;
  readonly exports: ExportConfig;
  readonly agents: Readonly<Record<string, AgentConfig>>;
  readonly auth: readonly AuthRuleConfig[];
  readonly approvals: ApprovalsConfig;
  readonly console: ConsoleConfig;
  readonly audit: AuditConfig;
  readonly policy: PolicyConfig;
  /** Names under which the operator's own code may reach rows past the policy. Default none. */
  readonly ungoverned: readonly string[];
  /** Null: texts are not embedded. */
  readonly embeddings: EmbeddingsConfig | null;
  readonly llm: LlmConfig;
  readonly traces: TracesConfig;
  readonly metrics: MetricsConfig;
  readonly logging: LoggingConfig;
}

/** The configuration as a file holds it. Each section is a class: its type, defaults, checks, schema and documentation. */
export class ConfigurationFile {
  @Option('where MCP is served, and within which limits')
  @Nested(ServerConfig)
  readonly server?: ServerConfig;

  @Option('the MongoDB that holds the rows')
  @Nested(DatabaseConfig)
  readonly database?: DatabaseConfig;

  @Option('the Parse Server that rows are reached through')
  @Nested(ParseConfig)
  readonly parse?: ParseConfig;

  @Option('what replicas share')
  @Nested(RedisConfig)
  readonly redis?: RedisConfig;

  @Option('policy, agents and auth rules change while the service runs')
  @Nested(ReloadConfig)
  readonly reload?: ReloadConfig;

  @Option('resources that sessions watch')
  @Nested(SubscriptionsConfig)
  readonly subscriptions?: SubscriptionsConfig;

  @Option('calls that go on after their answer')
  @Nested(TaskConfig)
  readonly tasks?: TaskConfig;

  @Option('exports that are fetched after they were requested')
  @Nested(ExportConfig)
  readonly exports?: ExportConfig;

  @Option('which language model `parley chat` and `parley console` ask')
  @Nested(LlmConfig)
  readonly llm?: LlmConfig;

  @Option('who decides when the policy wants approval')
  @Nested(ApprovalsConfig)
  readonly approvals?: ApprovalsConfig;

  @Option("the operators' page")
  @Nested(ConsoleConfig)
  readonly console?: ConsoleConfig;

  @Option('what is recorded, where, and what happens when that fails')
  @Nested(AuditConfig)
  readonly audit?: AuditConfig;

  @Option('where texts become vectors')
  @Nested(EmbeddingsConfig)
  @Nullable()
  readonly embeddings?: EmbeddingsConfig | null;

  @Option('where spans go')
  @Nested(TracesConfig)
  readonly traces?: TracesConfig;

  @Option('a listener for metrics')
  @Nested(MetricsConfig)
  readonly metrics?: MetricsConfig;

  @Option('what is logged, and in which form')
  @Nested(LoggingConfig)
  readonly logging?: LoggingConfig;

  @Option(
    "paths of ES modules, relative to the file: code of the operator's that brings tools and class rules",
  )
  @IsTexts()
  readonly plugins?: readonly string[];

  @Option('names under which code of a plugin or an application may reach rows past the policy')
  @IsArray()
  @IsString({ each: true })
  @Matches(/^[A-Za-z][A-Za-z0-9._-]{0,63}$/, { each: true })
  @ArrayUnique()
  readonly ungoverned?: readonly string[];

  @Option('named sets of limits; without any, one agent called `default` reads everything the policy leaves')
  @MapOf(AgentConfig, { pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$' })
  readonly agents?: Readonly<Record<string, AgentConfig>>;

  @Option('the first rule in order that recognises a credential decides')
  @ListOf(AuthRuleOptions)
  readonly auth?: readonly AuthRuleOptions[];

  @Option('what agents may see and do with which class')
  @Nested(PolicyOptions)
  readonly policy?: PolicyOptions;
}

/** What the configuration is checked by. */
export const CONFIG_SCHEMA: SchemaNode & Required<Pick<SchemaNode, 'properties'>> = {
  properties: {},
  ...schemaOf(ConfigurationFile),
};

/** The configuration file as JSON Schema, for editors and other checks: with descriptions and defaults. */
export function configurationSchema(): Readonly<Record<string, unknown>> {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Configuration of Parley',
    ...documentedSchemaOf(ConfigurationFile),
  };
}
