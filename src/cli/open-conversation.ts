import { Conversation, openModel } from '#llm';
import { type Environment, type LlmConfig, llmOf, type ParleyConfig } from '#config';
import type { OpenAgent } from './open-agent.js';

/** The settings of an agent with the environment over them. */
function llmSettings(
  llm: LlmConfig,
  env: Environment,
): Omit<LlmConfig, 'provider'> & { provider: string | null } {
  const given = (name: string) => env[name] || undefined;
  return {
    ...llm,
    provider: given('LLM_PROVIDER') ?? llm.provider,
    model: given('LLM_MODEL') ?? llm.model,
    endpoint: given('LLM_BASE_URL') ?? given('LLM_ENDPOINT') ?? llm.endpoint,
    apiKey: given('LLM_API_KEY') ?? llm.apiKey,
  };
}

export type OpenConversation = (agent: OpenAgent) => Conversation;

/**
 * @param agent whose settings hold; undefined: those of the only one
 * @returns what opens a conversation, so that settings are judged before anything else is opened
 * @throws ModelSettingsError
 */
export function preparedConversation(
  config: ParleyConfig,
  agent: string | undefined,
  env: Environment,
  warn: (line: string) => void,
): OpenConversation {
  const [only = ''] = Object.keys(config.agents);
  const settings = llmSettings(llmOf(config, agent ?? only), env);
  const model = openModel(settings);
  if (settings.allowedEndpoints === null)
    warn('[SECURITY] llm.allowedEndpoints is not set: what agents read may be sent to any endpoint');
  return ({ tools, permissions }) => new Conversation(model, tools, { ...settings, permissions, warn });
}
