import { describe, expect, it } from 'vitest';
import { compileJsonSchema } from './json-schema-check.js';

const schema = {
  type: 'object',
  properties: { count: { type: 'integer', default: 3 }, 'a/b': { type: 'string' } },
  additionalProperties: false,
};

describe('the check of a schema of others', () => {
  it('names the place and the rule of a mistake, and no value', () => {
    const check = compileJsonSchema(schema);
    expect(check({ count: 1 })).toEqual([]);
    expect(check({ count: 'S3CRET' })).toEqual(['count: must be integer']);
    expect(check({ 'a/b': 1 })).toEqual(['a/b: must be string']);
    expect(check({ other: 1 })).toEqual(["must NOT have additional properties 'other'"]);
  });

  it('fills in defaults only where its caller asks for them', () => {
    const [plain, filled] = [{}, {}];
    expect(compileJsonSchema(schema)(plain)).toEqual([]);
    expect(compileJsonSchema(schema, { useDefaults: true })(filled)).toEqual([]);
    expect([plain, filled]).toEqual([{}, { count: 3 }]);
  });

  it('cannot be made of what is no JSON Schema', () => {
    expect(() => compileJsonSchema({ type: 'objekt' })).toThrow(TypeError);
  });
});
