import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Service, startService } from '../../support/service.js';

/** What a model pays: a token is four bytes, in every figure here. */
const tokensOf = (...texts: readonly string[]) =>
  Math.ceil(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 4);

/** One call of a recorded conversation. `answer` is part of its result; `refused` is the code and a part of the text. */
interface RecordedCall {
  readonly tool: string;
  readonly arguments: Record<string, unknown>;
  readonly answer?: Record<string, unknown>;
  readonly refused?: readonly [code: string, part: string];
}

interface Question {
  readonly question: string;
  readonly calls: readonly RecordedCall[];
  readonly atMost: { readonly calls: number; readonly tokens: number };
}

interface Listed {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: { readonly properties?: Record<string, { enum?: string[]; description?: string }> };
}

interface Result {
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Record<string, unknown>;
}

const here = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const QUESTIONS = JSON.parse(here('./questions/music-shop.json')) as Question[];
const DEMO = parse(here('../../../parley.yaml')) as Record<string, Record<string, object>>;
const { database: _, ...config } = DEMO;
const key = (agent: string) => ({ 'X-MCP-API-Key': `${agent}-key` });
/** Beside the agent of the demo, others of the same database. */
const served = (classes: object = {}) => ({
  ...config,
  server: { requireCustomHeader: null },
  agents: {
    ...config['agents'],
    admin: { permissions: 'admin', allowMutations: true, tenantId: 'northside', rateLimit: 600 },
    nobodys: { permissions: 'readonly' },
    narrow: { permissions: 'readonly', tenantId: 'northside', classes: { only: ['Album', 'Artist'] } },
    everything: { permissions: 'readonly', tenantId: 'northside', classes: { except: ['Song'] } },
  },
  auth: [
    ...['admin', 'nobodys', 'narrow', 'everything'].map((agent) => ({ apiKey: `${agent}-key`, agent })),
    { anonymous: true, agent: 'northside' },
  ],
  policy: { ...config['policy'], classes: { ...config['policy']?.['classes'], ...classes } },
});

let service: Service;
const clients: Client[] = [];

async function connect(headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: 'scenario', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers } });
  await client.connect(transport as never);
  clients.push(client);
  return client;
}

const toolsOf = async (client: Client) => (await client.listTools()).tools as unknown as Listed[];
const classesOf = (tools: readonly Listed[], name: string) =>
  tools.find((tool) => tool.name === name)?.inputSchema.properties?.['class_name']?.enum;

beforeAll(async () => {
  const seed = JSON.parse(here('../../../demo/seed.json')) as unknown;
  service = await startService({ seed, config: served() });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await service.stop();
});

describe('the list of tools of the demo', () => {
  it('costs a model at most 3,000 tokens, and 20 KB altogether', async () => {
    const result = await (await connect()).listTools();
    const read = result.tools.map(({ name, description, inputSchema }) =>
      JSON.stringify({ name, description, inputSchema }),
    );
    expect(tokensOf(...read)).toBeLessThanOrEqual(3000);
    expect(Buffer.byteLength(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))).toBeLessThanOrEqual(20_480);
  });

  it('holds the tools that can work, and names their classes', async () => {
    const tools = await toolsOf(await connect());
    const names = tools.map(({ name }) => name);
    for (const absent of ['call_method', 'semantic_search', 'atlas_faceted_search', 'create_object'])
      expect(names).not.toContain(absent);
    expect(names).toContain('atlas_text_search');
    expect(classesOf(tools, 'query_class')).toContain('Album');
    expect(classesOf(tools, 'find_similar')).toEqual(['Review']);
    for (const { inputSchema } of tools)
      if (inputSchema.properties?.['class_name'])
        expect(inputSchema.properties['class_name'].description).toMatch(/class/);
  });

  it('answers a tool that is not listed with its own refusal', async () => {
    const client = await connect();
    const call = { class_name: 'Album', method_name: 'archive' };
    const refused = (await client.callTool({ name: 'call_method', arguments: call })) as unknown as Result;
    expect(refused).toMatchObject({ isError: true, _meta: { 'parse.error_code': 'invalid_argument' } });
    expect(refused.content[0]?.text).toContain("declares no method 'archive'");
  });
});

describe('the classes in the list', () => {
  it('are those of the agent: none of another one, and none without a tenant', async () => {
    expect(classesOf(await toolsOf(await connect(key('narrow'))), 'query_class')).toEqual([
      'Album',
      'Artist',
    ]);
    const unbound = await toolsOf(await connect(key('nobodys')));
    expect(classesOf(unbound, 'query_class')).toContain('Album');
    expect(classesOf(unbound, 'query_class')).not.toContain('Order');
    expect(JSON.stringify(unbound)).not.toContain('SupplierContract');
  });

  it('are those that the calls admit, for every tool and agent', async () => {
    for (const agent of ['nobodys', 'narrow', 'everything']) {
      const client = await connect(key(agent));
      const tools = await toolsOf(client);
      for (const name of ['count_objects', 'get_sample_objects', 'query_class']) {
        const listed = classesOf(tools, name) ?? [];
        for (const className of ['Album', 'Order', 'Song', 'SupplierContract']) {
          const call = { name, arguments: { class_name: className } };
          const { isError = false } = (await client.callTool(call)) as unknown as Result;
          expect([agent, name, className, listed.includes(className)]).toEqual([
            agent,
            name,
            className,
            !isError,
          ]);
        }
      }
    }
  });

  it('change with the policy, and clients are notified', { timeout: 60_000 }, async () => {
    const client = await connect(key('narrow'));
    let notified = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (notified += 1));
    let hidden = false;
    // The listening stream of the client opens by itself, at some time: until then nothing reaches it.
    await vi.waitFor(
      async () => {
        hidden = !hidden;
        service.reconfigure(served(hidden ? { Artist: { hidden: true } } : {}));
        service.signal('SIGHUP');
        const expected = hidden ? ['Album'] : ['Album', 'Artist'];
        await vi.waitFor(
          async () => expect(classesOf(await toolsOf(client), 'query_class')).toEqual(expected),
          5000,
        );
        expect(notified).toBeGreaterThan(0);
      },
      { timeout: 40_000, interval: 200 },
    );
    service.reconfigure(served());
    service.signal('SIGHUP');
  });
});

describe('a typical question', () => {
  const costs: string[] = [];
  let client: Client;
  beforeAll(async () => {
    client = await connect();
    // The schemas that the client holds structured content against.
    await client.listTools();
  });
  // `QUESTIONS=print` shows the table of docs/operations/performance.md.
  afterAll(
    () => void (process.env['QUESTIONS'] === 'print' && process.stdout.write(`${costs.join('\n')}\n`)),
  );

  it.each(QUESTIONS)('$question', async ({ question, calls, atMost }) => {
    let tokens = 0;
    for (const { tool, arguments: args, answer, refused } of calls) {
      const result = (await client.callTool({ name: tool, arguments: args })) as unknown as Result;
      const [{ text } = { text: '' }] = result.content;
      tokens += tokensOf(JSON.stringify({ name: tool, arguments: args }), text);
      if (refused) {
        const [code, part] = refused;
        expect(result).toMatchObject({ isError: true, _meta: { 'parse.error_code': code } });
        expect(text).toContain(part);
      } else {
        expect([result.isError ?? false, text]).toEqual([false, text]);
        expectPart(JSON.parse(text), answer);
        expect(result.structuredContent).toEqual(JSON.parse(text));
      }
    }
    costs.push(`| ${question} | ${calls.length} | ${tokens} |`);
    expect(calls.length).toBeLessThanOrEqual(atMost.calls);
    expect(tokens).toBeLessThanOrEqual(atMost.tokens);
  });
});

/** Objects hold these members, lists begin with these entries. */
function expectPart(actual: unknown, part: unknown): void {
  if (Array.isArray(part)) {
    for (const [at, entry] of part.entries()) expectPart((actual as unknown[])[at], entry);
  } else if (part !== null && typeof part === 'object') {
    for (const [name, member] of Object.entries(part))
      expectPart((actual as Record<string, unknown>)[name], member);
  } else expect(actual).toEqual(part);
}
