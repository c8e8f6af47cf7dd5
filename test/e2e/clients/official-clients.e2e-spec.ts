import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Service, startService } from '../../support/service.js';
import { POSTS_SEED, POSTS_CONFIG, SECRET } from '../../fixtures/posts.fixture.js';

/** What a host does with a server, in the words that every official client shares. */
interface Host {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(request: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  listResources(): Promise<{ resources: { uri: string }[] }>;
  readResource(request: { uri: string }): Promise<unknown>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(request: { name: string; arguments?: Record<string, string> }): Promise<unknown>;
  close(): Promise<void>;
}

let service: Service;
beforeAll(async () => {
  service = await startService({ seed: POSTS_SEED, config: POSTS_CONFIG });
});

const info = { name: 'scenario', version: '1.0.0' };

async function classic(): Promise<Host> {
  const client = new ClassicClient(info);
  await client.connect(new ClassicTransport(new URL(service.url)) as never);
  return client as unknown as Host;
}

const modern = (mode: unknown, supportedProtocolVersions?: string[]) => async (): Promise<Host> => {
  const client = new ModernClient(info, {
    versionNegotiation: { mode },
    ...(supportedProtocolVersions && { supportedProtocolVersions }),
  } as never);
  await client.connect(new ModernTransport(new URL(service.url)));
  return client as unknown as Host;
};

describe.each<[client: string, connect: () => Promise<Host>]>([
  ['the official client v1', classic],
  ['the official client v2, legacy', modern('legacy')],
  ['the official client v2, legacy 2025-06-18', modern('legacy', ['2025-06-18'])],
  ['the official client v2, negotiating', modern('auto')],
  ['the official client v2, pinned to 2026-07-28', modern({ pin: '2026-07-28' })],
])('%s', (_, connect) => {
  let host: Host;
  beforeAll(async () => {
    host = await connect();
  });
  afterAll(() => host.close());

  it('lists the tools that can work for the agent', async () => {
    const { tools } = await host.listTools();
    expect(tools.map((tool) => tool.name)).toEqual([
      'list_tools',
      'get_all_schemas',
      'get_schema',
      'query_class',
      'count_objects',
      'get_object',
      'get_objects',
      'get_sample_objects',
      'explain_query',
      'aggregate',
      'group_by',
      'group_by_date',
      'distinct',
      'export_data',
      'atlas_text_search',
      'atlas_autocomplete',
    ]);
  });

  it('reads real rows under the policy', async () => {
    const result = await host.callTool({
      name: 'query_class',
      arguments: {
        class_name: 'Post',
        where: { status: 'live' },
        order: '-likes',
        limit: 2,
        include: ['author'],
      },
    });
    expect(result).toMatchObject({
      isError: false,
      structuredContent: {
        class_name: 'Post',
        results: [
          { objectId: 'p59', likes: 59, author: { objectId: 'a1', name: 'Ann' } },
          { objectId: 'p58', likes: 58 },
        ],
      },
    });
    expect(JSON.stringify(result)).not.toContain(SECRET);
  });

  it('receives words and codes of why a call is refused', async () => {
    const result = await host.callTool({ name: 'query_class', arguments: { class_name: 'Contract' } });
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: "Class 'Contract' is not accessible to this agent" }],
      _meta: { 'parse.error_code': 'access_denied', 'parse.details': { kind: 'hidden_class' } },
    });
  });

  it('reads resources of the classes it may know', async () => {
    const { resources } = await host.listResources();
    const uris = resources.map((resource) => resource.uri);
    expect(uris).toContain('parse://Post/schema');
    expect(uris.join()).not.toContain('Contract');
    const read = await host.readResource({ uri: 'parse://Post/count' });
    expect(JSON.stringify(read)).toContain('60');
  });

  it('gets the built-in prompts', async () => {
    const { prompts } = await host.listPrompts();
    expect(prompts.map((prompt) => prompt.name)).toEqual([
      'parse_conventions',
      'parse_relations',
      'explore_database',
      'class_overview',
      'count_by',
      'recent_activity',
      'find_relationship',
      'created_in_range',
    ]);
    const prompt = await host.getPrompt({
      name: 'count_by',
      arguments: { class_name: 'Post', group_by: 'status' },
    });
    expect(JSON.stringify(prompt)).toContain('$status');
  });
});

describe('completion', () => {
  it('offers class and field names under the same policy, from 2025-11-25 on', async () => {
    const client = (await classic()) as unknown as ClassicClient;
    const complete = async (argument: { name: string; value: string }, context?: Record<string, string>) => {
      const answer = await client.complete({
        ref: { type: 'ref/prompt', name: 'count_by' },
        argument,
        ...(context && { context: { arguments: context } }),
      });
      return answer.completion.values;
    };
    expect(await complete({ name: 'class_name', value: '' })).toContain('Post');
    expect(await complete({ name: 'class_name', value: 'Con' })).toEqual([]);
    const fields = await complete({ name: 'group_by', value: '' }, { class_name: 'Post' });
    expect(fields).toContain('status');
    expect(fields).not.toContain('internalNote');
    await client.close();
  });
});
