import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { CONFIG_SCHEMA } from './config-schema.js';

describe('the schema of the configuration', () => {
  it('is valid JSON Schema without an unknown keyword or a loose type', () => {
    const strict = new Ajv({ allErrors: true, allowUnionTypes: true, strict: true });
    expect(strict.compile(CONFIG_SCHEMA)({})).toBe(true);
  });
});
