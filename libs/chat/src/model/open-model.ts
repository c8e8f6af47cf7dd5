import type { ResolveHost } from '#core';
import { AnthropicModel } from './anthropic.js';
import { type LanguageModel, ModelSettingsError } from './language-model.js';
import { ModelClient, type ModelClientOptions } from './model-client.js';
import { ModelEndpoint } from './model-endpoint.js';
import { OpenAiModel } from './openai.js';

export const PROVIDERS = ['openai', 'anthropic', 'lmstudio'] as const;
export type Provider = (typeof PROVIDERS)[number];

/** The language model, its endpoint and limits. */
export interface ModelSettings {
  /** `lmstudio` stands for any server with OpenAI's protocol. */
  readonly provider: string | null;
  /** Default: a small model of the provider. */
  readonly model?: string | null;
  /** Base URL. Default: the provider's; for `lmstudio` `http://localhost:1234/v1`. */
  readonly endpoint?: string | null;
  /** API key. Required except for `lmstudio`. */
  readonly apiKey?: string | null;
  /** The permitted endpoints; null permits public endpoints and this machine. */
  readonly allowedEndpoints?: readonly string[] | null;
  /** Seconds without data after which a request fails. Default 90. */
  readonly timeout?: number;
  /** Maximum seconds of one answer. Default 600. */
  readonly maxDuration?: number;
  /** Repetitions after 429, 5xx and overload. Default 2. */
  readonly retries?: number;
  /** Maximum tokens of one answer, where the API requires a limit (Anthropic). Default 1024. */
  readonly maxTokens?: number;
  /** Maximum bytes of one answer. Default 8 MiB. */
  readonly maxBytes?: number;
  /** Resolves host names; for tests. */
  readonly resolve?: ResolveHost;
}

const DEFAULTS: Readonly<Record<Provider, { readonly model: string; readonly endpoint: string }>> = {
  openai: { model: 'gpt-4o-mini', endpoint: 'https://api.openai.com/v1' },
  anthropic: { model: 'claude-haiku-4-5', endpoint: 'https://api.anthropic.com/v1' },
  lmstudio: { model: 'qwen2.5-7b-instruct', endpoint: 'http://localhost:1234/v1' },
};

/** Local servers require a key and ignore its value. */
const PLACEHOLDER_KEY = 'lm-studio';
/** Characters that a header may have. */
const HEADER_TEXT = /^[\x21-\x7e]+$/;

/** @throws ModelSettingsError for invalid settings */
export function openModel(settings: ModelSettings): LanguageModel {
  const provider = chooseProvider(settings.provider);
  const key = findApiKey(provider, settings.apiKey ?? null);
  const { model, endpoint } = DEFAULTS[provider];
  const place = new ModelEndpoint(settings.endpoint ?? endpoint, {
    allowed: settings.allowedEndpoints ?? null,
    ...(settings.resolve && { resolve: settings.resolve }),
  });
  const limits: Omit<ModelClientOptions, 'label' | 'path' | 'headers'> = {
    secret: key === PLACEHOLDER_KEY ? '' : key,
    timeout: settings.timeout ?? 90,
    maxDuration: settings.maxDuration ?? 600,
    retries: settings.retries ?? 2,
    maxBytes: settings.maxBytes ?? 8_388_608,
  };
  const named = settings.model ?? model;
  if (provider === 'anthropic') {
    const headers = { 'x-api-key': key, 'anthropic-version': '2023-06-01' };
    const client = new ModelClient(place, { ...limits, label: 'Anthropic call', path: '/messages', headers });
    return new AnthropicModel(named, settings.maxTokens ?? 1024, client);
  }
  const headers = { Authorization: `Bearer ${key}` };
  const client = new ModelClient(place, { ...limits, label: 'LLM call', path: '/chat/completions', headers });
  return new OpenAiModel(provider, named, client);
}

function chooseProvider(named: string | null): Provider {
  const choices = PROVIDERS.join(', ');
  if (named === null || named === '')
    throw new ModelSettingsError(
      `no provider of language models is set; choose one of ${choices} (LLM_PROVIDER)`,
    );
  const known = PROVIDERS.find((provider) => provider === named.toLowerCase());
  if (!known)
    throw new ModelSettingsError(`unknown provider '${named}'; choose one of ${choices} (LLM_PROVIDER)`);
  return known;
}

function findApiKey(provider: Provider, given: string | null): string {
  const key = given?.trim() ?? '';
  if (key === '' && provider === 'lmstudio') return PLACEHOLDER_KEY;
  if (key === '') throw new ModelSettingsError(`${provider} needs an API key (LLM_API_KEY)`);
  if (!HEADER_TEXT.test(key))
    throw new ModelSettingsError('the API key has characters that no key has (LLM_API_KEY)');
  return key;
}
