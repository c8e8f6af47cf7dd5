import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { PROVIDERS } from '#chat';
import { ConfigError } from '../config-error.js';
import { loadConfig } from '../load-config.js';
import { readDefaults, readSchema } from '../schema/class-schema.js';
import { findLlm } from '../checks/models-checks.js';
import { LlmSection } from './models.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-llm-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function load(llm: object, env: Record<string, string> = {}) {
  writeFileSync(join(folder, 'parley.yaml'), stringify({ llm }));
  return loadConfig(env, folder).config.llm;
}

function faultPaths(llm: object): string[] {
  try {
    load(llm);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path }) => path);
    throw error;
  }
}

describe('the language model of the configuration', () => {
  it('is none unless given, and has documented defaults', () => {
    expect(load({})).toEqual(readDefaults(LlmSection));
  });

  it('knows the providers that there are', () => {
    expect(readSchema(LlmSection).properties?.['provider']?.enum).toEqual([...PROVIDERS, null]);
  });

  it('never stops a service by the environment of the chat', () => {
    expect(load({}, { LLM_PROVIDER: 'nobody', LLM_BASE_URL: 'ftp://x' })).toEqual(readDefaults(LlmSection));
  });

  it('takes its key from the environment', () => {
    expect(load({ apiKey: '${LLM_API_KEY}' }, { LLM_API_KEY: 'sk-1' }).apiKey).toBe('sk-1');
  });

  it.each([
    ['another provider', { provider: 'gemini' }, 'llm.provider'],
    ['http to another machine', { endpoint: 'http://models.example' }, 'llm.endpoint'],
    ['credentials in the address', { endpoint: 'https://a:b@models.example' }, 'llm.endpoint'],
    [
      'a place that is not listed',
      { endpoint: 'https://models.example', allowedEndpoints: ['https://other.example'] },
      'llm.endpoint',
    ],
    ['no turn at all', { maxIterations: 0 }, 'llm.maxIterations'],
    ['half a price', { prices: { m: { input: 1 } } }, 'llm.prices.m.output'],
    ['a price below zero', { prices: { m: { input: 1, output: -1 } } }, 'llm.prices.m.output'],
    ['an unknown key', { key: 'x' }, 'llm.key'],
  ])('refuses %s', (_title, llm, path) => {
    expect(faultPaths(llm)).toContain(path);
  });

  it('may be inside a network when it is listed', () => {
    const endpoint = 'http://10.0.0.5:8000/v1';
    expect(faultPaths({ endpoint, allowedEndpoints: ['http://10.0.0.5:8000'] })).toEqual([]);
  });
});

describe('the model of one agent', () => {
  function loadAgents(agents: object, llm: object = {}) {
    writeFileSync(join(folder, 'parley.yaml'), stringify({ llm, agents }));
    return loadConfig({}, folder).config;
  }
  const errorsOf = (own: object, llm: object = {}) => {
    try {
      loadAgents({ reader: { llm: own } }, llm);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.issues.map(({ path }) => path);
    }
  };

  it('has its own words, model and prices over the installation’s, and the lower of every limit', () => {
    const own = { model: 'small', systemPrompt: 'Be kind.', maxIterations: 2, autoCompactAt: null };
    const price = { input: 1, output: 2 };
    const config = loadAgents(
      { reader: { llm: { ...own, prices: { small: price } } }, other: {} },
      { model: 'large', maxIterations: 5, maxTokens: 99, autoCompactAt: 700, prices: { large: price } },
    );
    expect(findLlm(config, 'reader')).toEqual({
      ...config.llm,
      model: 'small',
      systemPrompt: 'Be kind.',
      maxIterations: 2,
      prices: { small: price, large: price },
    });
    expect(findLlm(config, 'other')).toEqual(config.llm);
    expect(findLlm(config, '__proto__')).toEqual(config.llm);
  });

  it.each([
    ['more turns than the default', { maxIterations: 9 }, {}, 'agents.reader.llm.maxIterations'],
    [
      'more turns than the installation',
      { maxIterations: 4 },
      { maxIterations: 3 },
      'agents.reader.llm.maxIterations',
    ],
    ['longer answers', { maxTokens: 5000 }, {}, 'agents.reader.llm.maxTokens'],
    ['more of what was read', { maxContextTokens: 200_000 }, {}, 'agents.reader.llm.maxContextTokens'],
    ['another place', { endpoint: 'https://evil.example' }, {}, 'agents.reader.llm.endpoint'],
    ['another key', { apiKey: 'sk-1' }, {}, 'agents.reader.llm.apiKey'],
    ['other permitted places', { allowedEndpoints: null }, {}, 'agents.reader.llm.allowedEndpoints'],
  ])('is refused %s', (_title, own, llm, path) => {
    expect(errorsOf(own, llm)).toContain(path);
  });
});
