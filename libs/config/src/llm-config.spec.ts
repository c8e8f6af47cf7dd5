import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { PROVIDERS } from '#llm';
import { ConfigError } from './config-faults.js';
import { DEFAULT_LLM } from './model-config.js';
import { LLM_SCHEMA } from './llm-schema.js';
import { loadConfig } from './load-config.js';

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
    if (error instanceof ConfigError) return error.faults.map(({ path }) => path);
    throw error;
  }
}

describe('the language model of the configuration', () => {
  it('is none unless given, and has documented defaults', () => {
    expect(load({})).toEqual(DEFAULT_LLM);
  });

  it('knows the providers that there are', () => {
    expect(LLM_SCHEMA.properties.provider.enum).toEqual([...PROVIDERS, null]);
  });

  it('never stops a service by the environment of the chat', () => {
    expect(load({}, { LLM_PROVIDER: 'nobody', LLM_BASE_URL: 'ftp://x' })).toEqual(DEFAULT_LLM);
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
    ['half a price', { prices: { m: { input: 1 } } }, 'llm.prices.m'],
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
