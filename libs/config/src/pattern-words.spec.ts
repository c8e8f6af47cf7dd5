import { describe, expect, it } from 'vitest';
import type { SchemaNode } from '#schema';
import { ConfigurationFile } from './config.js';
import { ConfigError } from './config-error.js';
import { readConfig } from './load-config.js';
import { readSchema } from './schema/class-schema.js';

/** Every pattern below a node, with its words. */
function listPatterns(node: unknown): { pattern: string; words: string | undefined }[] {
  if (typeof node !== 'object' || node === null) return [];
  const { pattern, patternWords, description } = node as SchemaNode;
  return [
    ...(typeof pattern === 'string' ? [{ pattern, words: patternWords ?? description }] : []),
    ...Object.values(node).flatMap(listPatterns),
  ];
}

describe('a text that does not match its pattern', () => {
  it('is told in words what to write, for every pattern of the configuration', () => {
    const patterns = listPatterns(readSchema(ConfigurationFile));
    expect(patterns.length).toBeGreaterThan(30);
    expect(patterns.filter(({ words }) => words === undefined)).toEqual([]);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ server: { path: 'mcp' } }, 'server.path: must be a path: /, then letters'],
    [{ redis: { url: 'localhost:6379' } }, 'redis.url: must be a URL with redis:// or rediss:// or null'],
    [{ database: { uri: 'localhost' } }, 'database.uri: must be embedded, or a URI with mongodb://'],
    [{ databases: { '1st': {} } }, 'must be a letter, then letters, digits, _ and -'],
    [{ ungoverned: ['a b'] }, 'must be a letter, then letters, digits and . _ -'],
    [{ policy: { classes: { Post: { masks: { $a: 'drop' } } } } }, 'must be the name of a field'],
  ])('%j', (config, words) => {
    const message = (() => {
      try {
        readConfig(config);
        return '';
      } catch (error) {
        return error instanceof ConfigError ? error.message : String(error);
      }
    })();
    expect(message).toContain(words);
    expect(message).not.toMatch(/matches|\\^/);
  });
});
