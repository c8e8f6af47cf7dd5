import { describe, expect, it } from 'vitest';
import { callOf, runTool, SampleRecords } from '../contracts/sample-records.js';
import { defineTool } from '../declaration/tool-declaration.js';
import { PermittedTools } from '../tool.js';
import { ListTools } from './list-tools.js';

const PERMITTED = [
  defineTool({ name: 'query_class', category: 'query', description: 'Queries.' }),
  defineTool({ name: 'list_tools', category: 'discovery', description: 'Lists.' }),
  defineTool({ name: 'invoices', category: 'Billing', description: 'Invoices.' }),
].map(({ definition }) => definition);

class Permits extends PermittedTools {
  list() {
    return PERMITTED;
  }

  listTools() {
    return PERMITTED;
  }
}

const list = (args: object) => {
  const tool = new ListTools(new Permits());
  return runTool(tool, 'list', args, callOf(tool, new SampleRecords()));
};

describe('list_tools', () => {
  it('lists what the agent may call, by name, category and description', async () => {
    expect((await list({})).tools).toEqual([
      { name: 'query_class', category: 'query', description: 'Queries.' },
      { name: 'list_tools', category: 'discovery', description: 'Lists.' },
      { name: 'invoices', category: 'Billing', description: 'Invoices.' },
    ]);
  });

  it.each([
    ['QUERY', ['query_class']],
    ['billing', ['invoices']],
    ['unknown', []],
    ['', ['query_class', 'list_tools', 'invoices']],
  ])('narrows to category %j', async (category, names) => {
    expect((await list({ category })).tools.map(({ name }) => name)).toEqual(names);
  });

  it('always explains the same categories, and those of the application', async () => {
    const all = ['schema', 'query', 'aggregate', 'mutation', 'export', 'custom', 'discovery', 'Billing'];
    expect(Object.keys((await list({})).categories)).toEqual(all);
    expect(Object.keys((await list({ category: 'unknown' })).categories)).toEqual(all);
  });

  it('refuses a category that is no text', async () => {
    await expect(list({ category: 5 })).rejects.toThrow('Invalid arguments: category must be a string');
  });
});
