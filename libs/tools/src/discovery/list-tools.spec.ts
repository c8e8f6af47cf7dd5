import { describe, expect, it } from 'vitest';
import { callOf, SampleRecords } from '../contracts/sample-records.js';
import { defineTool } from '../declaration/tool-declaration.js';
import { PermittedTools } from '../permitted-tools.js';
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
}

const list = (args: object) => {
  const tool = new ListTools(new Permits());
  return tool.list({ ...args }, callOf(tool, new SampleRecords()));
};

describe('list_tools', () => {
  it('lists what the agent may call, by name, category and description', () => {
    expect(list({}).tools).toEqual([
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
  ])('narrows to category %j', (category, names) => {
    expect(list({ category }).tools.map(({ name }) => name)).toEqual(names);
  });

  it('always explains the same six categories', () => {
    const six = ['schema', 'query', 'aggregate', 'mutation', 'export', 'custom'];
    expect(Object.keys(list({}).categories)).toEqual(six);
    expect(Object.keys(list({ category: 'unknown' }).categories)).toEqual(six);
  });

  it('refuses a category that is no text', () => {
    expect(() => list({ category: 5 })).toThrow('Invalid arguments: category must be a string');
  });
});
