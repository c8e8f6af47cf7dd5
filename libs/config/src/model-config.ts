import type { Prices, Provider } from '#llm';

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

export const DEFAULT_EMBEDDINGS = Object.freeze({
  apiKey: null,
  requestDimensions: false,
  timeout: 10,
  cacheSize: 1000,
  budget: null,
});

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
