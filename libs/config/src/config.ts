import type { PolicyConfig } from '#policy';
import { readDocumentedSchema, readSchema } from './schema/class-schema.js';
import { ArrayUnique, IsArray, IsString, Matches } from 'class-validator';
import { Nullable, type SchemaNode } from '#schema';
import { IsTexts, ListOf, MapOf, Nested, Option, type Plain } from './schema/option.js';
import { type AgentConfig, AgentEntry } from './sections/agents.js';
import { AuditSection } from './sections/audit.js';
import { type AuthRuleConfig, AuthRuleEntry } from './sections/auth.js';
import {
  ChangesSection,
  ExportSection,
  ReloadSection,
  SubscriptionsSection,
  TaskSection,
} from './sections/background.js';
import { EmbeddingsSection, LlmSection } from './sections/models.js';
import { LoggingSection, MetricsSection, TracesSection } from './sections/observability.js';
import { ApprovalsSection, ConsoleSection } from './sections/operators.js';
import { PolicySection } from './sections/policy.js';
import { ServerSection } from './sections/server.js';
import { RedisSection } from './sections/redis.js';
import { DATABASE_LABEL, DatabaseEntry, type FurtherDatabaseConfig } from './sections/databases.js';
import { DatabaseSection, type LiveQueryConfig, ParseSection } from './sections/stores.js';

/** The whole configuration with every default filled in (docs/reference/configuration.md). */
export interface ParleyConfig {
  readonly server: Plain<ServerSection>;
  /** The one that has users, roles and sessions: the first of `databases`. */
  readonly database: Plain<DatabaseSection>;
  /** What `databases` calls it; null: it is that of the section `database`. */
  readonly databaseName: string | null;
  /** The others of `databases`, by name. */
  readonly furtherDatabases: Readonly<Record<string, FurtherDatabaseConfig>>;
  readonly parse: Plain<ParseSection>;
  readonly redis: Plain<RedisSection>;
  readonly reload: Plain<ReloadSection>;
  /** From `parse`. */
  readonly liveQuery: LiveQueryConfig;
  readonly subscriptions: Plain<SubscriptionsSection>;
  readonly tasks: Plain<TaskSection>;
  readonly changes: Plain<ChangesSection>;
  readonly exports: Plain<ExportSection>;
  readonly agents: Readonly<Record<string, AgentConfig>>;
  readonly auth: readonly AuthRuleConfig[];
  readonly approvals: Plain<ApprovalsSection>;
  readonly console: Plain<ConsoleSection>;
  readonly audit: Plain<AuditSection>;
  readonly policy: PolicyConfig;
  /** Names under which the operator's own code may reach rows past the policy. Default none. */
  readonly ungoverned: readonly string[];
  /** Null: texts are not embedded. */
  readonly embeddings: Plain<EmbeddingsSection> | null;
  readonly llm: Plain<LlmSection>;
  readonly traces: Plain<TracesSection>;
  readonly metrics: Plain<MetricsSection>;
  readonly logging: Plain<LoggingSection>;
}

/** The databases of a configuration in the sections of a file. */
export function databaseSections({
  database,
  databaseName,
  furtherDatabases,
}: Pick<ParleyConfig, 'database' | 'databaseName' | 'furtherDatabases'>): object {
  return databaseName === null
    ? { database }
    : { databases: { [databaseName]: database, ...furtherDatabases } };
}

/** The configuration as a file holds it. Each section is a class: its type, defaults, checks, schema and documentation. */
export class ConfigurationFile {
  @Option('the address, the limits and the path of MCP')
  @Nested(ServerSection)
  readonly server?: ServerSection;

  @Option('the MongoDB that holds the rows')
  @Nested(DatabaseSection)
  readonly database?: DatabaseSection;

  @Option('several databases by name; `database` is the short form for one')
  @MapOf(DatabaseEntry, {
    pattern: DATABASE_LABEL,
    description: 'a letter, then letters, digits, _ and -, 32 characters at most',
  })
  readonly databases?: Readonly<Record<string, DatabaseEntry>>;

  @Option('the Parse Server that rows are reached through')
  @Nested(ParseSection)
  readonly parse?: ParseSection;

  @Option('what replicas share')
  @Nested(RedisSection)
  readonly redis?: RedisSection;

  @Option('policy, agents and auth rules change while the service runs')
  @Nested(ReloadSection)
  readonly reload?: ReloadSection;

  @Option('resources that sessions watch')
  @Nested(SubscriptionsSection)
  readonly subscriptions?: SubscriptionsSection;

  @Option('calls that go on after their answer')
  @Nested(TaskSection)
  readonly tasks?: TaskSection;

  @Option('sets of writes that are reviewed, applied and taken back as one')
  @Nested(ChangesSection)
  readonly changes?: ChangesSection;

  @Option('exports that are fetched after they were requested')
  @Nested(ExportSection)
  readonly exports?: ExportSection;

  @Option('which language model `parley chat` and `parley console` ask')
  @Nested(LlmSection)
  readonly llm?: LlmSection;

  @Option('who decides when the policy wants approval')
  @Nested(ApprovalsSection)
  readonly approvals?: ApprovalsSection;

  @Option("the operators' page")
  @Nested(ConsoleSection)
  readonly console?: ConsoleSection;

  @Option('what is recorded, where, and what happens when that fails')
  @Nested(AuditSection)
  readonly audit?: AuditSection;

  @Option('where texts become vectors')
  @Nested(EmbeddingsSection)
  @Nullable()
  readonly embeddings?: EmbeddingsSection | null;

  @Option('where spans go')
  @Nested(TracesSection)
  readonly traces?: TracesSection;

  @Option('a listener for metrics')
  @Nested(MetricsSection)
  readonly metrics?: MetricsSection;

  @Option('what is logged, and in which form')
  @Nested(LoggingSection)
  readonly logging?: LoggingSection;

  @Option(
    "paths of ES modules, relative to the file: code of the operator's that brings tools and class rules",
  )
  @IsTexts()
  readonly plugins?: readonly string[];

  @Option('names under which code of a plugin or an application may reach rows past the policy')
  @IsArray()
  @IsString({ each: true })
  @Matches(/^[A-Za-z][A-Za-z0-9._-]{0,63}$/, {
    each: true,
    message: 'a letter, then letters, digits and . _ -, 64 characters at most',
  })
  @ArrayUnique()
  readonly ungoverned?: readonly string[];

  @Option('named sets of limits; without any, one agent called `default` reads everything the policy leaves')
  @MapOf(AgentEntry, {
    pattern: '^[A-Za-z_][A-Za-z0-9_-]{0,63}$',
    description: 'a letter or _, then letters, digits, _ and -, 64 characters at most',
  })
  readonly agents?: Readonly<Record<string, AgentEntry>>;

  @Option('the first rule in order that recognises a credential decides')
  @ListOf(AuthRuleEntry)
  readonly auth?: readonly AuthRuleEntry[];

  @Option('what agents may see and do with which class')
  @Nested(PolicySection)
  readonly policy?: PolicySection;
}

/** What the configuration is checked by. */
export const CONFIG_SCHEMA: SchemaNode & Required<Pick<SchemaNode, 'properties'>> = {
  properties: {},
  ...readSchema(ConfigurationFile),
};

/** The configuration file as JSON Schema, for editors and other checks: with descriptions and defaults. */
export function configurationSchema(): Readonly<Record<string, unknown>> {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Configuration of Parley',
    ...readDocumentedSchema(ConfigurationFile),
  };
  // The checker alone reads the words of a pattern: other programs may refuse a keyword that they do not know.
  const text = JSON.stringify(schema, (name, value: unknown) =>
    name === 'patternWords' ? undefined : value,
  );
  return JSON.parse(text) as Record<string, unknown>;
}
