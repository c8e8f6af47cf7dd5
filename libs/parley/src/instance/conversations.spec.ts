import { describe, expect, it } from 'vitest';
import { loadConfig } from '#config';
import { readModelSettings, withGiven } from './conversations.js';

const { llm } = loadConfig({}, '/nowhere').config;
const CONFIGURED = {
  ...llm,
  provider: 'openai',
  model: 'm',
  endpoint: 'https://one.example/v1',
  apiKey: 'k',
} as const;

describe('the settings of a model', () => {
  it('never send the key of one provider to another that the environment names', () => {
    const settings = readModelSettings(CONFIGURED, { LLM_PROVIDER: 'anthropic' });
    expect(settings).toMatchObject({ provider: 'anthropic', model: null, endpoint: null, apiKey: null });
  });

  it('are those of the configuration for what the environment leaves out', () => {
    const settings = readModelSettings(CONFIGURED, { LLM_PROVIDER: 'OpenAI', LLM_MODEL: 'n' });
    expect(settings).toMatchObject({ model: 'n', endpoint: 'https://one.example/v1', apiKey: 'k' });
  });

  it('from code go with the variables that name no provider, and with none of another', () => {
    const variables = { LLM_MODEL: 'n', LLM_API_KEY: 'k', LLM_BASE_URL: 'https://two.example/v1' };
    const given = (env: object) => withGiven(readModelSettings(llm, { ...env }), { provider: 'openai' });
    expect(given(variables)).toMatchObject({
      provider: 'openai',
      model: 'n',
      endpoint: 'https://two.example/v1',
      apiKey: 'k',
    });
    expect(given({ ...variables, LLM_PROVIDER: 'anthropic' })).toEqual({ provider: 'openai' });
    expect(given({ ...variables, LLM_PROVIDER: 'OpenAI' })).toMatchObject({ apiKey: 'k' });
  });
});
