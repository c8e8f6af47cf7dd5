import type { ResolveHost } from '#agent';
import { AnthropicModel } from './anthropic.js';
import { type LanguageModel, ModelSettingsError } from './language-model.js';
import { ModelWire, type WireOptions } from './model-client.js';
import { ModelEndpoint } from './model-endpoint.js';
import { OpenAiModel } from './openai.js';

export const PROVIDERS = ['openai', 'anthropic', 'lmstudio'] as const;
export type Provider = (typeof PROVIDERS)[number];

/** Which language model is asked, where and within which limits. */
export interface ModelSettings {
  /** `lmstudio` stands for every server of one's own that speaks OpenAI's wire. */
  readonly provider: string | null;
  /** Default: a small one of the provider's. */
  readonly model?: string | null;
  /** Base URL. Default: the provider's own; `lmstudio`: `http://localhost:1234/v1`. */
  readonly endpoint?: string | null;
  /** Key of the provider. Default: none, which only `lmstudio` permits. */
  readonly apiKey?: string | null;
  /** The only endpoints that may be asked; null: any public one, and this machine. */
  readonly allowedEndpoints?: readonly string[] | null;
  /** Seconds without a byte of an answer. Default 90. */
  readonly timeout?: number;
  /** Seconds that one answer may take altogether. Default 600. */
  readonly maxDuration?: number;
  /** Repetitions after 429, 5xx and overload. Default 2. */
  readonly retries?: number;
  /** Tokens of one answer, where the wire asks for a limit (Anthropic). Default 1024. */
  readonly maxTokens?: number;
  /** Bytes of one answer. Default 8 MiB. */
  readonly maxBytes?: number;
  /** Looks up addresses; for tests. */
  readonly resolve?: ResolveHost;
}

const DEFAULTS: Readonly<Record<Provider, { readonly model: string; readonly endpoint: string }>> = {
  openai: { model: 'gpt-4o-mini', endpoint: 'https://api.openai.com/v1' },
  anthropic: { model: 'claude-haiku-4-5', endpoint: 'https://api.anthropic.com/v1' },
  lmstudio: { model: 'qwen2.5-7b-instruct', endpoint: 'http://localhost:1234/v1' },
};

/** Servers of one's own ask for some key and look at none. */
const PLACEHOLDER_KEY = 'lm-studio';
/** What can stand in a header. */
const HEADER_TEXT = /^[\x21-\x7e]+$/;

/** @throws ModelSettingsError when no model can be asked with these settings */
export function openModel(settings: ModelSettings): LanguageModel {
  const provider = providerOf(settings.provider);
  const key = keyOf(provider, settings.apiKey ?? null);
  const { model, endpoint } = DEFAULTS[provider];
  const place = new ModelEndpoint(settings.endpoint ?? endpoint, {
    allowed: settings.allowedEndpoints ?? null,
    ...(settings.resolve && { resolve: settings.resolve }),
  });
  const limits: Omit<WireOptions, 'label' | 'path' | 'headers'> = {
    secret: key === PLACEHOLDER_KEY ? '' : key,
    timeout: settings.timeout ?? 90,
    maxDuration: settings.maxDuration ?? 600,
    retries: settings.retries ?? 2,
    maxBytes: settings.maxBytes ?? 8_388_608,
  };
  const named = settings.model ?? model;
  if (provider === 'anthropic') {
    const headers = { 'x-api-key': key, 'anthropic-version': '2023-06-01' };
    const wire = new ModelWire(place, { ...limits, label: 'Anthropic call', path: '/messages', headers });
    return new AnthropicModel(named, settings.maxTokens ?? 1024, wire);
  }
  const headers = { Authorization: `Bearer ${key}` };
  const wire = new ModelWire(place, { ...limits, label: 'LLM call', path: '/chat/completions', headers });
  return new OpenAiModel(provider, named, wire);
}

function providerOf(named: string | null): Provider {
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

function keyOf(provider: Provider, given: string | null): string {
  const key = given?.trim() ?? '';
  if (key === '' && provider === 'lmstudio') return PLACEHOLDER_KEY;
  if (key === '') throw new ModelSettingsError(`${provider} needs an API key (LLM_API_KEY)`);
  if (!HEADER_TEXT.test(key))
    throw new ModelSettingsError('the API key has characters that no key has (LLM_API_KEY)');
  return key;
}
