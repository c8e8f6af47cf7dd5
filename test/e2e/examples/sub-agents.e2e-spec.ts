import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool } from '../../support/service.js';
import { type Example, followReadme, startExample } from './example-process.js';

const as = (agent: string) => ({ 'X-MCP-API-Key': `${agent}-in-development` });

describe('the example sub-agents', () => {
  let example: Example;
  beforeAll(async () => {
    example = await startExample('sub-agents', { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' });
  });
  afterAll(() => example.stop());
  const mcp = () => ({ url: `${example.origin}/mcp` });

  const research = async (
    agent: string,
    steps: readonly (readonly [string, object])[],
    classes?: string[],
  ) => {
    const task = steps.map(([tool, args]) => `${tool} ${JSON.stringify(args)}`).join('\n');
    const answer = await callTool(mcp(), 'research', { task, ...(classes && { classes }) }, as(agent));
    return { ...answer, steps: answer.data['steps'] as { tool: string; refused?: string }[] };
  };

  it('does what its README says', async () => {
    const shown = await followReadme('sub-agents', { 'http://127.0.0.1:3000': example.origin });
    expect(shown.length).toBeGreaterThan(4);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('lets a researcher see no draft and no source, though its editor does', async () => {
    const direct = await callTool(
      mcp(),
      'query_class',
      { class_name: 'Article', include: ['source'] },
      as('editor'),
    );
    expect(direct.wire).toMatch(/mayor signed/);
    expect(direct.wire).toMatch(/555 0199/);
    const ways = [
      ['query_class', { class_name: 'Article' }],
      ['query_class', { class_name: 'Article', where: { $or: [{ status: 'draft' }, { year: { $gt: 0 } }] } }],
      ['query_class', { class_name: 'Article', where: { status: { $ne: 'published' } } }],
      [
        'query_class',
        { class_name: 'Article', where: { source: { $inQuery: { className: 'Source', where: {} } } } },
      ],
      ['get_object', { class_name: 'Source', object_id: 's1' }],
    ] as const;
    const { wire, isError, steps } = await research('editor', ways);
    expect(isError).toBe(false);
    expect(steps).toHaveLength(ways.length);
    expect(wire).toContain('Bridges of the river');
    expect(wire).not.toMatch(/mayor signed|555 0199|must not be named/);
  });

  it('lets a researcher change nothing, though its editor may', async () => {
    const { steps } = await research('editor', [
      ['update_object', { class_name: 'Article', object_id: 'a3', fields: { status: 'published' } }],
      ['call_method', { class_name: 'Article', method_name: 'publish' }],
      ['create_class', { class_name: 'Mine' }],
    ]);
    expect(steps.map(({ refused }) => refused)).toEqual([
      'permission_denied',
      'tool_filtered',
      'permission_denied',
    ]);
  });

  it('lets nobody read hidden classes by handing on the task of reading them', async () => {
    const { steps, wire } = await research(
      'editor',
      [['query_class', { class_name: 'Contract' }]],
      ['Contract', 'Article'],
    );
    expect(steps).toEqual([{ tool: 'query_class', refused: 'access_denied' }]);
    expect(wire).not.toContain('1200');
  });

  it('stops a researcher whose model never ends', async () => {
    const forever = Array.from({ length: 40 }, () => ['count_objects', { class_name: 'Article' }] as const);
    expect((await research('editor', forever)).steps).toHaveLength(8);
  });
});
