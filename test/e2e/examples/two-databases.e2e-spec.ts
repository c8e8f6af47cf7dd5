import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool } from '../../support/service.js';
import { type Example, followReadme, startExample } from './example-process.js';

const as = { 'X-MCP-API-Key': 'seller-in-development' };

describe('the example two-databases', () => {
  let example: Example;
  beforeAll(async () => {
    example = await startExample('two-databases');
  });
  afterAll(() => example.stop());

  it('does what its README says', async () => {
    const shown = await followReadme('two-databases', { 'http://127.0.0.1:3000': example.origin });
    expect(shown.length).toBeGreaterThan(4);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('shows neither rows of another region nor an address in any answer', async () => {
    for (const class_name of ['Order', 'Customer'])
      for (const tool of [
        'query_class',
        'get_sample_objects',
        'get_schema',
        'export_data',
        'explain_query',
      ]) {
        const { wire } = await callTool({ url: `${example.origin}/mcp` }, tool, { class_name }, as);
        expect(wire).not.toMatch(/A-2|"Jo"|@example\.com/);
      }
  });

  it('ends when the application does', async () => {
    await example.stop();
    expect(example.output()).not.toMatch(/ ERROR |Unhandled/);
  });
});
