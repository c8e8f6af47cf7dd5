import { Conversation, openModel } from '#llm';
import type { LlmConfig, Environment } from '#config';
import type { OpenAgent } from './open-agent.js';

/** The section `llm` with the environment over it. */
function llmSettings(
  llm: LlmConfig,
  env: Environment,
): Omit<LlmConfig, 'provider'> & { provider: string | null } {
  const given = (name: string) => env[name] || undefined;
  return {
    ...llm,
    provider: given('LLM_PROVIDER') ?? llm.provider,
    model: given('LLM_MODEL') ?? llm.model,
    endpoint: given('LLM_BASE_URL') ?? llm.endpoint,
    apiKey: given('LLM_API_KEY') ?? llm.apiKey,
  };
}

export type OpenConversation = (agent: OpenAgent) => Conversation;

/**
 * @returns what opens a conversation, so that settings are judged before anything else is opened
 * @throws ModelSettingsError
 */
export function preparedConversation(
  llm: LlmConfig,
  env: Environment,
  warn: (line: string) => void,
): OpenConversation {
  const settings = llmSettings(llm, env);
  const model = openModel(settings);
  if (settings.allowedEndpoints === null)
    warn('[SECURITY] llm.allowedEndpoints is not set: what agents read may be sent to any endpoint');
  return ({ tools, permissions }) => new Conversation(model, tools, { ...settings, permissions, warn });
}
