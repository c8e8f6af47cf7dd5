import type { AgentShapeOptions, IdentityOptions } from '#agent';
import type { Prices, Provider } from '#llm';
import type { PolicyConfig } from '#policy';
import type { SubscriptionOptions } from '#subscriptions';
import type { AuditConfig } from './audit-config.js';
import type { ClientCertificateOptions, OAuthIssuer, TenantClaim, UserClaim } from '#auth';
import type { LiveQueryConfig } from './live-query-config.js';
import type { LoggingConfig, MetricsConfig, TracesConfig } from './observability-config.js';

export interface ServerConfig {
  /** Address to listen on. Anything but loopback needs authentication. Default `127.0.0.1`. */
  readonly host: string;
  /** Default 3001; 0 takes a free one. */
  readonly port: number;
  /** Where MCP is served. Default `/mcp`. */
  readonly path: string;
  /** URL of `path` as clients know it, where it is not that of the first audience. Default null. */
  readonly publicUrl: string | null;
  /** Bytes of one request body. Default 1,048,576. */
  readonly maxBodySize: number;
  /** Seconds between keep-alives of a stream; 0 or less: none. Default 2. */
  readonly heartbeatInterval: number;
  /** Calls, and separately open streams, served at once; null: unbounded. Default 100. */
  readonly maxConcurrentDispatchers: number | null;
  /** Open at once; further ones are closed. Default 10,000. */
  readonly maxConnections: number;
  readonly allowedOrigins: readonly string[];
  /** Host names accepted besides loopback ones. */
  readonly allowedHosts: readonly string[];
  /** A header every request must carry: its name, or one name with its exact value. */
  readonly requireCustomHeader: string | Readonly<Record<string, string>> | null;
  /** Refuses bodies of undeclared length (411). Default true. */
  readonly requireContentLength: boolean;
  /** Seconds a person has to decide. Default 300. */
  readonly approvalTimeout: number;
  /** Seals what clients carry between two rounds of a call; at least 32 characters. Default: one that replicas share by themselves. */
  readonly stateKey: string | null;
  /** Keys that were `stateKey` before: what they sealed is still accepted. */
  readonly previousStateKeys: readonly string[];
  /** What an unknown session id is worth: a label without power, or an error. Default `lenient`. */
  readonly sessions: 'lenient' | 'strict';
  /** Seconds that running calls and tasks have to end in when the process is asked to. Default 30. */
  readonly drainTimeout: number;
  /** Requests per window (seconds) and remote address, before anyone is authenticated. Default none. */
  readonly preAuthRateLimit: { readonly limit: number; readonly window: number } | null;
}

export interface DatabaseConfig {
  /** `embedded`, or a mongodb:// URI. Null, the default beside a Parse Server: no direct access. */
  readonly uri: string | null;
  readonly name: string;
  /** Seed file for an empty database; relative to the configuration file. */
  readonly seed: string | null;
}

export interface ParseConfig {
  /** Where Parse Server is mounted. Null: there is none, and everything is read directly. */
  readonly serverUrl: string | null;
  readonly appId: string | null;
  /** Null: every agent is one in client mode. */
  readonly masterKey: string | null;
  /** For servers that ask clients for one. */
  readonly restApiKey: string | null;
}

/** Calls that go on after their answer (docs/tasks.md). */
export interface TaskConfig {
  /** Seconds that a task is kept after its last change. Default 3600. */
  readonly lifetime: number;
  /** Seconds between two questions of a client. Default 1. */
  readonly pollInterval: number;
  /** Seconds between two signs of life of a run; after two without one it is given to another worker. Default 5. */
  readonly heartbeat: number;
  /** Runs at once in this process. Default 4. */
  readonly concurrency: number;
  /** That one principal may begin within a lifetime, on all replicas together. Default 1000. */
  readonly maxPerPrincipal: number;
}

/** Exports that are fetched after they were asked for (docs/exports.md). */
export interface ExportConfig {
  /** Seconds that one can be fetched. Default 3600. */
  readonly lifetime: number;
  /** Rows that none goes beyond. Default 1,000,000. */
  readonly maxRows: number;
  /** That one principal may have at once; the oldest gives way. Default 20. */
  readonly maxPerPrincipal: number;
}

/** Reading the configuration anew while the service runs (docs/reload.md). */
export interface ReloadConfig {
  /** Whether the file is looked at; without it only SIGHUP has it read anew. Default true. */
  readonly watch: boolean;
  /** Seconds between two looks. Default 2. */
  readonly interval: number;
}

export interface RedisConfig {
  /** `redis://` or `rediss://`: where replicas share their state. Default null: this process keeps it alone. */
  readonly url: string | null;
  /** What every key and channel begins with. Default `parley`. */
  readonly prefix: string;
}

/** With whose rights an agent reads (docs/configuration.md#identities). */
type IdentityConfig =
  | 'master'
  | { readonly session: 'caller' }
  | { readonly user: string; readonly label?: string }
  | (UserClaim & { readonly label?: string })
  | { readonly role: string; readonly label?: string }
  | { readonly impersonate: string; readonly mint?: boolean; readonly label?: string };

export interface AgentConfig
  extends Omit<AgentShapeOptions, 'rateLimiter' | 'tenantId' | 'impersonationLabel'>, IdentityOptions {
  readonly identity?: IdentityConfig;
  readonly tenantId?: string | number | null | TenantClaim;
  /** Of the language model when it speaks for this agent. Default: as `llm`. */
  readonly llm?: AgentLlmConfig;
}

/** Access tokens of one issuer (docs/oauth.md). */
export interface OAuthConfig extends OAuthIssuer {
  /** Scopes that lead to another agent than the rule's, from the least to the most. */
  readonly scopes?: Readonly<Record<string, string>>;
  /** Without all of them nobody is admitted. Default none. */
  readonly requiredScopes?: readonly string[];
  /** Asks what `parley revoke` took back. Default false. */
  readonly revocationList?: boolean;
}

export type AuthRuleConfig =
  | { readonly apiKey: string; readonly agent: string }
  | { readonly apiKeyHash: string; readonly agent: string }
  | { readonly clientCertificate: ClientCertificateOptions; readonly agent: string }
  | { readonly oauth: OAuthConfig; readonly agent: string }
  | { readonly parseSession: true; readonly agent: string }
  | { readonly anonymous: true; readonly agent: string };

export interface ApprovalsConfig {
  /** Who is asked when the policy wants approval: whoever sits at the calling client, another person, or first one and then the other. Default `client`. */
  readonly mode: 'client' | 'desk' | 'both';
  /** Names of the agents that decide at the desk. Default none. */
  readonly approvers: readonly string[];
  /** Is told of cases that wait at the desk; `secret` signs what it is told. Default none. */
  readonly webhook: { readonly url: string; readonly secret: string } | null;
  /** Seconds that a case waits at the desk, and that an approval there may be used. Default 300. */
  readonly expiry: number;
}

/** The operators' page (docs/console.md). */
export interface ConsoleConfig {
  /** Names of the agents that may see it. Null, the default: it is not served. */
  readonly operators: readonly string[] | null;
}

/** Where texts become vectors (docs/configuration.md#embeddings). */
export interface EmbeddingsConfig {
  /** Base URL of an API that speaks OpenAI's `/embeddings`. */
  readonly endpoint: string;
  readonly model: string;
  /** Default null: none is sent. */
  readonly apiKey: string | null;
  readonly dimensions: number;
  /** Default false. */
  readonly requestDimensions: boolean;
  /** Seconds. Default 10. */
  readonly timeout: number;
  /** Vectors remembered. Default 1000. */
  readonly cacheSize: number;
  /** Estimated tokens that each tenant may spend per window (seconds). Default none. */
  readonly budget: { readonly tokens: number; readonly window: number } | null;
}

/** Which language model `parley chat` and `parley console` ask (docs/chat.md). The service itself asks none. */
export interface LlmConfig {
  /** Default null: `LLM_PROVIDER`, or none. */
  readonly provider: Provider | null;
  /** Default null: a small one of the provider's. */
  readonly model: string | null;
  /** Base URL. Default null: the provider's own. */
  readonly endpoint: string | null;
  readonly apiKey: string | null;
  /** The only endpoints that texts may be sent to, embeddings included. Default null: any. */
  readonly allowedEndpoints: readonly string[] | null;
  /** Takes the place of what models are told by default. */
  readonly systemPrompt: string | null;
  readonly systemPromptSuffix: string | null;
  /** Seconds without a byte of an answer. Default 90. */
  readonly timeout: number;
  /** Repetitions of a request that came at a bad time. Default 2. */
  readonly retries: number;
  /** Tokens of one answer, where the wire asks for a limit. Default 1024. */
  readonly maxTokens: number;
  /** Turns of the model per question. Default 8. */
  readonly maxIterations: number;
  /** Estimated tokens of one request. Default 100,000. */
  readonly maxContextTokens: number;
  /** Characters of one tool result that a model is given. Default 60,000. */
  readonly maxResultCharacters: number;
  /** Tokens of the history above which it is summarised. Default null: never. */
  readonly autoCompactAt: number | null;
  /** US dollars per million tokens, by model; laid over the list prices. */
  readonly prices: Prices;
}

/** What one agent may have of its own, over `llm`; limits only lower (docs/configuration.md#agent-llm). */
export type AgentLlmConfig = Partial<
  Pick<
    LlmConfig,
    | 'model'
    | 'systemPrompt'
    | 'systemPromptSuffix'
    | 'maxTokens'
    | 'maxIterations'
    | 'maxContextTokens'
    | 'maxResultCharacters'
    | 'autoCompactAt'
    | 'prices'
  >
>;

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

export const DEFAULT_SERVER: ServerConfig = Object.freeze({
  host: '127.0.0.1',
  port: 3001,
  path: '/mcp',
  publicUrl: null,
  maxBodySize: 1_048_576,
  heartbeatInterval: 2,
  maxConcurrentDispatchers: 100,
  maxConnections: 10_000,
  allowedOrigins: [],
  allowedHosts: [],
  requireCustomHeader: null,
  requireContentLength: true,
  approvalTimeout: 300,
  stateKey: null,
  previousStateKeys: [],
  drainTimeout: 30,
  sessions: 'lenient',
  preAuthRateLimit: null,
});

export const DEFAULT_APPROVALS: ApprovalsConfig = Object.freeze({
  mode: 'client',
  approvers: [],
  webhook: null,
  expiry: 300,
});

export const DEFAULT_CONSOLE: ConsoleConfig = Object.freeze({ operators: null });

export const DEFAULT_TASK_CONFIG: TaskConfig = Object.freeze({
  lifetime: 3600,
  pollInterval: 1,
  heartbeat: 5,
  concurrency: 4,
  maxPerPrincipal: 1000,
});

export const DEFAULT_EXPORT_CONFIG: ExportConfig = Object.freeze({
  lifetime: 3600,
  maxRows: 1_000_000,
  maxPerPrincipal: 20,
});

export const DEFAULT_DATABASE: DatabaseConfig = Object.freeze({
  uri: 'embedded',
  name: 'parley',
  seed: null,
});

export const DEFAULT_EMBEDDINGS = Object.freeze({
  apiKey: null,
  requestDimensions: false,
  timeout: 10,
  cacheSize: 1000,
  budget: null,
});

export const DEFAULT_LLM: LlmConfig = Object.freeze({
  provider: null,
  model: null,
  endpoint: null,
  apiKey: null,
  allowedEndpoints: null,
  systemPrompt: null,
  systemPromptSuffix: null,
  timeout: 90,
  retries: 2,
  maxTokens: 1024,
  maxIterations: 8,
  maxContextTokens: 100_000,
  maxResultCharacters: 60_000,
  autoCompactAt: null,
  prices: {},
});

export const DEFAULT_PARSE: ParseConfig = Object.freeze({
  serverUrl: null,
  appId: null,
  masterKey: null,
  restApiKey: null,
});

export const DEFAULT_RELOAD: ReloadConfig = Object.freeze({ watch: true, interval: 2 });

export const DEFAULT_REDIS: RedisConfig = Object.freeze({ url: null, prefix: 'parley' });
