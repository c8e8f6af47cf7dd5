import type { Prices, Provider } from '#chat';
import { IsBoolean, IsIn, IsInt, IsNumber, IsPositive, IsString, Matches, Max, Min } from 'class-validator';
import { Nullable } from '#schema';
import { IsText, IsTexts, MapOf, Nested, Option, pickOptions, type Plain } from '../schema/option.js';

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
  @Matches(/^https?:\/\//, { message: 'a URL with http:// or https://' })
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
  @Matches(/^https?:\/\//, { message: 'a URL with http:// or https://' })
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
