import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool, rpc } from '../../support/service.js';
import { type Example, followReadme, program, startExample } from './example-process.js';

const as = (agent: string) => ({ 'X-MCP-API-Key': `${agent}-in-development` });
const PATIENT = { timeout: 60_000, interval: 50 };

describe('the example custom-tools', () => {
  let example: Example;
  beforeAll(async () => {
    example = await startExample('custom-tools', { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true' });
  });
  afterAll(() => example.stop());
  const mcp = () => ({ url: `${example.origin}/mcp` });

  /** The official client, with a person in front of it who answers what it is asked. */
  async function person<T>(
    agent: string,
    answer: Record<string, string | boolean>,
    work: (client: Client) => Promise<T>,
  ): Promise<T> {
    const client = new Client(
      { name: 'person', version: '1' },
      { capabilities: { elicitation: { form: {} } } },
    );
    client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: answer }));
    await client.connect(
      new StreamableHTTPClientTransport(new URL(mcp().url), { requestInit: { headers: as(agent) } }),
    );
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  }

  it('does what its README says, and notices the client that gave up', async () => {
    const shown = await followReadme(
      'custom-tools',
      { 'npm run -s example custom-tools/client --': program('custom-tools/client') },
      { PARLEY_URL: mcp().url },
    );
    expect(shown.length).toBeGreaterThan(6);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
    await expect.poll(() => example.output(), PATIENT).toContain('nobody waits any more');
  });

  it('changes nothing for a caller without a person, without the tier, or with a yes that it gives itself', async () => {
    const args = { item: 'bolt', pieces: 1, reason: 'just so' };
    expect(await callTool(mcp(), 'write_off', args, as('keeper'))).toMatchObject({ code: 'approval_denied' });
    expect(await callTool(mcp(), 'write_off', args, as('visitor'))).toMatchObject({
      code: 'permission_denied',
    });
    const claimed = { ...args, approve: true, inputResponses: { approve: { action: 'accept' } } };
    expect(await callTool(mcp(), 'write_off', claimed, as('keeper'))).toMatchObject({ isError: true });
    const { data } = await callTool(
      mcp(),
      'get_object',
      { class_name: 'Item', object_id: 'bolt' },
      as('visitor'),
    );
    expect(data).toMatchObject({ object: { stock: 120 } });
  });

  it('asks again for each change: a yes is for one call', async () => {
    const stocks = await person('keeper', { approve: true }, async (client) => {
      const once = () =>
        client.callTool({ name: 'write_off', arguments: { item: 'nut', pieces: 1, reason: 'lost' } });
      return [await once(), await once()].map(
        ({ structuredContent, content }) => structuredContent ?? content,
      );
    });
    expect(JSON.stringify(stocks)).toMatch(/79.*78/);
  });

  it('shows cost to nobody, in rows, prompts, filters or previews', async () => {
    const { wire } = await callTool(mcp(), 'query_class', { class_name: 'Item' }, as('keeper'));
    expect(wire).not.toContain('cost');
    const { text } = await rpc(
      mcp(),
      'prompts/get',
      { name: 'stocktake', arguments: { shelf: 'B' } },
      as('visitor'),
    );
    expect(text).toContain('Pane of glass');
    expect(text).not.toContain('18.5');
    const filter = { class_name: 'Item', where: { cost: { $gt: 1 } } };
    expect(await callTool(mcp(), 'query_class', filter, as('keeper'))).toMatchObject({
      code: 'access_denied',
    });
  });

  it('adds and removes a tool while clients are connected, and notifies them', async () => {
    await person('keeper', { approve: true }, async (client) => {
      const names = async () => (await client.listTools()).tools.map(({ name }) => name);
      const set = (open: boolean) => client.callTool({ name: 'set_season', arguments: { open } });
      expect(await names()).not.toContain('gift_wrap');
      await set(true);
      expect(await names()).toContain('gift_wrap');
      await set(false);
      expect(await names()).not.toContain('gift_wrap');
    });
    expect(await callTool(mcp(), 'gift_wrap', {}, as('keeper'))).toMatchObject({ isError: true });
  });

  it('refuses arguments that do not fit before the tool sees them', async () => {
    const { code, text } = await callTool(mcp(), 'reorder', { below: 0, admin: true }, as('visitor'));
    expect(code).toBe('invalid_argument');
    expect(text).toContain('below must not be less than 1');
  });
});
