import { describe, expect, it } from 'vitest';
import { loadConfig } from '#config';
import { readModelSettings } from './conversations.js';

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
});
