import { isAllowedEndpoint, isSafeTransport } from '#data';
import type { Prices, Provider } from '#chat';
import type { ConfigIssue } from '../config-error.js';
import type { ParleyConfig } from '../config.js';
import { readDefaults } from '../schema/class-schema.js';
import { IsBoolean, IsIn, IsInt, IsNumber, IsPositive, IsString, Matches, Max, Min } from 'class-validator';
import { Nullable } from '#schema';
import { IsText, IsTexts, MapOf, Nested, Option, pickOptions, type Plain } from '../schema/option.js';
import { isSection, type Section } from '../section.js';

/** Tokens that each tenant may spend on embeddings. */
export class EmbeddingBudgetConfig {
  @Option('estimated tokens of one window', { required: true })
  @IsInt()
  @Min(1)
  readonly tokens!: number;

  @Option('seconds', { required: true })
  @IsNumber()
  @IsPositive()
  readonly window!: number;
}

/** The section `embeddings`: where texts become vectors. */
export class EmbeddingsSection {
  @Option(
    "base of an API with OpenAI's `/embeddings`: https, or http on this machine; among `llm.allowedEndpoints` if set",
    { required: true },
  )
  @IsString()
  @Matches(/^https?:\/\//)
  readonly endpoint!: string;

  @Option('name of the model; must be the one that created the stored vectors', { required: true })
  @IsText()
  readonly model!: string;

  @Option('sent as a bearer token; appears in no log and no answer')
  @IsText()
  @Nullable()
  readonly apiKey: string | null = null;

  @Option('dimensions of the stored vectors; an answer with any other number is an error', { required: true })
  @IsInt()
  @Min(1)
  @Max(8192)
  readonly dimensions!: number;

  @Option('requests this number of dimensions from the model')
  @IsBoolean()
  readonly requestDimensions: boolean = false;

  @Option('seconds')
  @IsNumber()
  @IsPositive()
  @Max(60)
  readonly timeout: number = 10;

  @Option('`{ tokens, window }`: estimated tokens per seconds and tenant, in this process; admins are exempt')
  @Nested(EmbeddingBudgetConfig)
  @Nullable()
  readonly budget: EmbeddingBudgetConfig | null = null;
}

/** US dollars per million tokens. */
class PriceConfig {
  @Option('price of the input of a model', { required: true })
  @IsNumber()
  @Min(0)
  readonly input!: number;

  @Option('price of its output', { required: true })
  @IsNumber()
  @Min(0)
  readonly output!: number;
}

/**
 * The section `llm`: which language model `parley chat` and `parley console` ask (docs/guide/chat.md). The service itself uses none, and
 * loads no client: the names of providers stand here too.
 */
export class LlmSection {
  @Option(
    "`openai`, `anthropic`, or `lmstudio` for any server of your own with OpenAI's protocol; null: `LLM_PROVIDER`",
  )
  @IsIn(['openai', 'anthropic', 'lmstudio', null])
  readonly provider: Provider | null = null;

  @Option('null: `gpt-4o-mini`, `claude-haiku-4-5`, `qwen2.5-7b-instruct`')
  @IsText()
  @Nullable()
  readonly model: string | null = null;

  @Option(
    'base URL; null: `https://api.openai.com/v1`, `https://api.anthropic.com/v1`, `http://localhost:1234/v1`',
  )
  @IsString()
  @Matches(/^https?:\/\//)
  @Nullable()
  readonly endpoint: string | null = null;

  @Option("write `'${LLM_API_KEY}'`; appears in no log, error or export")
  @IsText()
  @Nullable()
  readonly apiKey: string | null = null;

  @Option(
    'the only endpoints that texts may be sent to, embeddings included: same scheme, host and port, and a path below that of the entry; null: any public endpoint over https, and any on this machine',
  )
  @IsTexts()
  @Nullable()
  readonly allowedEndpoints: readonly string[] | null = null;

  @Option('replaces the default system prompt')
  @IsText()
  @Nullable()
  readonly systemPrompt: string | null = null;

  @Option('is appended to the system prompt')
  @IsText()
  @Nullable()
  readonly systemPromptSuffix: string | null = null;

  @Option('seconds without data of an answer, after which it is given up')
  @IsNumber()
  @IsPositive()
  @Max(3600)
  readonly timeout: number = 90;

  @Option('maximum tokens of one answer; Anthropic only')
  @IsInt()
  @Min(1)
  readonly maxTokens: number = 1024;

  @Option('maximum turns of the model per question')
  @IsInt()
  @Min(1)
  @Max(100)
  readonly maxIterations: number = 8;

  @Option('estimated tokens of one request; older results and questions are left out to stay below it')
  @IsInt()
  @Min(1000)
  readonly maxContextTokens: number = 100_000;

  @Option('tokens of the history above which it is summarised; null: never')
  @IsInt()
  @Min(1)
  @Nullable()
  readonly autoCompactAt: number | null = null;

  @Option(
    'US dollars per million tokens, by model: `gpt-4o-mini: { input: 0.15, output: 0.6 }`; added to the list prices, and replacing them',
  )
  @MapOf(PriceConfig)
  readonly prices: Prices = {};
}

export type LlmConfig = Plain<LlmSection>;

/** `agents.X.llm`: what one agent may have of its own. Where texts go, and with whose key, is the installation's alone. */
export const AgentLlmConfig = pickOptions(LlmSection, [
  'model',
  'systemPrompt',
  'systemPromptSuffix',
  'maxTokens',
  'maxIterations',
  'maxContextTokens',
  'autoCompactAt',
  'prices',
]);
export type AgentLlmConfig = InstanceType<typeof AgentLlmConfig>;

/** An agent may have less of these than the installation, never more. */
const LIMITS = ['maxTokens', 'maxIterations', 'maxContextTokens'] as const;

/** The settings of the model for one agent: its own over the installation's, and of every limit the lower one. */
export function findLlm({ llm, agents }: Pick<ParleyConfig, 'llm' | 'agents'>, agent: string): LlmConfig {
  const own: AgentLlmConfig = (Object.hasOwn(agents, agent) ? agents[agent]?.llm : undefined) ?? {};
  const given = Object.entries(own).filter(([, value]) => value !== null && value !== undefined);
  const limits = LIMITS.map((name) => [name, Math.min(own[name] ?? Infinity, llm[name])] as const);
  return {
    ...llm,
    ...Object.fromEntries(given),
    ...Object.fromEntries(limits),
    prices: { ...llm.prices, ...own.prices },
  };
}

/** A limit above the installation's would not hold: it is an error, not lowered in silence. */
export function agentLlmErrors(config: unknown): ConfigIssue[] {
  if (!isSection(config) || !isSection(config['agents'])) return [];
  const whole = isSection(config['llm']) ? config['llm'] : {};
  return Object.entries(config['agents']).flatMap(([name, agent]) => {
    const own = isSection(agent) ? agent['llm'] : undefined;
    return isSection(own) ? LIMITS.flatMap((limit) => limitErrors(name, limit, own, whole)) : [];
  });
}

function limitErrors(
  agent: string,
  limit: (typeof LIMITS)[number],
  own: Readonly<Record<string, unknown>>,
  whole: Readonly<Record<string, unknown>>,
): ConfigIssue[] {
  const wanted = own[limit];
  const most = typeof whole[limit] === 'number' ? whole[limit] : readDefaults(LlmSection)[limit];
  if (typeof wanted !== 'number' || wanted <= most) return [];
  return [
    {
      path: `agents.${agent}.llm.${limit}`,
      message: `must not be above llm.${limit}, which is ${most}`,
      related: [`llm.${limit}`],
    },
  ];
}

const UNSAFE_ENDPOINT = 'must be an https URL without credentials, or http on this machine';

/** Where conversations and texts of agents may be sent: encrypted or within this machine, and among what the operator lists. */
export function endpointErrors({ llm, embeddings }: Section): ConfigIssue[] {
  const allowed = isSection(llm) ? llm['allowedEndpoints'] : undefined;
  const names = Array.isArray(allowed) ? allowed.filter((entry) => typeof entry === 'string') : null;
  const notListed = (path: string) => ({
    path,
    message: 'is not among llm.allowedEndpoints',
    related: ['llm.allowedEndpoints'],
  });
  const errors: ConfigIssue[] = [];
  const texts = isSection(embeddings) ? embeddings['endpoint'] : undefined;
  if (typeof texts === 'string') {
    const path = 'embeddings.endpoint';
    if (!isSafeTransport(texts)) errors.push({ path, message: UNSAFE_ENDPOINT });
    else if (names && !isAllowedEndpoint(texts, names)) errors.push(notListed(path));
  }
  const conversations = isSection(llm) ? llm['endpoint'] : undefined;
  if (typeof conversations === 'string') {
    const path = 'llm.endpoint';
    // A place that the operator lists may also be one without encryption.
    if (names && !isAllowedEndpoint(conversations, names)) errors.push(notListed(path));
    if (!names && !isSafeTransport(conversations)) errors.push({ path, message: UNSAFE_ENDPOINT });
  }
  return errors;
}
