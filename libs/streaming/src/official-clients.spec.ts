import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, describe, expect, it } from 'vitest';
import { edgeUnderTest } from './contracts/edge-under-test.js';

const usual = await edgeUnderTest();
afterAll(() => usual.stop());

const info = { name: 'test', version: '1' };

/** What every client must be able to do, whatever it negotiated. */
interface Conversation {
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ messages: unknown[] }>;
  listResourceTemplates(): Promise<{ resourceTemplates: unknown[] }>;
  close(): Promise<void>;
}

async function converse(client: Conversation): Promise<void> {
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
  expect(await client.callTool({ name: 'echo', arguments: { a: 1 } })).toMatchObject({
    content: [{ type: 'text', text: '{\n  "a": 1\n}' }],
    structuredContent: { a: 1 },
  });
  expect((await client.listPrompts()).prompts).toHaveLength(8);
  expect((await client.getPrompt({ name: 'explore_database' })).messages).toHaveLength(1);
  expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(3);
  await expect(client.getPrompt({ name: 'nope' })).rejects.toMatchObject({ code: -32602 });
}

describe('the official clients', () => {
  it('v1 converses, and ends its session', async () => {
    const client = new FirstClient(info);
    const transport = new FirstTransport(new URL(usual.url));
    await client.connect(transport);
    expect(client.getServerVersion()).toEqual({ name: 'parley', version: '1.2.3' });
    await converse(client as unknown as Conversation);
    expect(
      await client.complete({
        ref: { type: 'ref/prompt', name: 'recent_activity' },
        argument: { name: 'limit', value: '' },
      }),
    ).toMatchObject({
      completion: { values: [] },
    });
    const { sessionId = '' } = transport;
    await transport.terminateSession();
    expect((await usual.sessions.find(sessionId))?.terminated).toBe(true);
    await client.close();
  });

  it.each(['2025-11-25', '2025-06-18'])('v2 converses in %s', async (version) => {
    const client = new Client(info, {
      versionNegotiation: { mode: 'legacy' },
      supportedProtocolVersions: [version],
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(usual.url)));
    expect(client.getServerVersion()).toMatchObject({ name: 'parley' });
    await converse(client as unknown as Conversation);
    await client.close();
  });

  it.each([{ pin: '2026-07-28' }, 'auto'] as const)('v2 converses without a session (%j)', async (mode) => {
    const client = new Client(info, { versionNegotiation: { mode } });
    const transport = new StreamableHTTPClientTransport(new URL(usual.url));
    await client.connect(transport);
    await converse(client as unknown as Conversation);
    expect(transport.sessionId).toBeUndefined();
    await client.close();
  });
});
