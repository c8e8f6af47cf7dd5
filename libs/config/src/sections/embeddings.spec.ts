import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ConfigError } from '../config-error.js';
import { loadConfig } from '../load-config.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-embeddings-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const GOOD = { endpoint: 'https://api.example.com/v1', model: 'm', dimensions: 3 };

function load(config: object) {
  writeFileSync(join(folder, 'parley.yaml'), stringify(config));
  return loadConfig({}, folder);
}

function faultPaths(config: object): string[] {
  try {
    load(config);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path }) => path);
    throw error;
  }
}

describe('the embeddings of the configuration', () => {
  it('are off unless given, and have documented defaults', () => {
    expect(load({ server: {} }).config.embeddings).toBeNull();
    expect(load({ embeddings: GOOD }).config.embeddings).toEqual({
      ...GOOD,
      apiKey: null,
      requestDimensions: false,
      timeout: 10,
      budget: null,
    });
  });

  it.each([
    ['http to another machine', { ...GOOD, endpoint: 'http://api.example.com/v1' }, 'embeddings.endpoint'],
    ['credentials in the address', { ...GOOD, endpoint: 'https://a:b@example.com' }, 'embeddings.endpoint'],
    ['no dimensions', { endpoint: GOOD.endpoint, model: 'm' }, 'embeddings.dimensions'],
    ['an unknown key', { ...GOOD, key: 'x' }, 'embeddings.key'],
    ['a budget without window', { ...GOOD, budget: { tokens: 1 } }, 'embeddings.budget.window'],
  ])('refuse %s', (_title, embeddings, path) => {
    expect(faultPaths({ embeddings })).toContain(path);
  });

  it('go only where llm.allowedEndpoints says, when it says anything', () => {
    const allowing = (...allowedEndpoints: string[]) => ({ embeddings: GOOD, llm: { allowedEndpoints } });
    expect(faultPaths(allowing('https://api.example.com'))).toEqual([]);
    expect(faultPaths(allowing('https://other.example.com'))).toEqual(['embeddings.endpoint']);
    expect(faultPaths(allowing())).toEqual(['embeddings.endpoint']);
  });
});

describe('a searchable class of the configuration', () => {
  const policy = (post: object) => ({ policy: { classes: { Post: post } } });

  it('stands for texts that agents may read', () => {
    const searchable = { field: 'vector', textFields: ['body'] };
    expect(faultPaths(policy({ fields: ['title'], searchable }))).toEqual([
      'policy.classes.Post.searchable.textFields',
    ]);
    expect(faultPaths(policy({ fields: ['body'], searchable }))).toEqual([]);
  });

  it.each(['_hashed_password', 'a.b', '$x'])('holds no vector in %s', (field) => {
    expect(faultPaths(policy({ searchable: { field } }))).toEqual(['policy.classes.Post.searchable.field']);
  });
});
