import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, describe, expect, it } from 'vitest';
import { edgeUnderTest } from '../testing/edge-under-test.js';

const usual = await edgeUnderTest();
const lively = await edgeUnderTest({ heartbeatInterval: 100 });
afterAll(() => Promise.all([usual.stop(), lively.stop()]));

const info = { name: 'test', version: '1' };

/** The features that every client must support, whatever version it negotiated. */
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
    content: [{ type: 'text', text: '{"a":1}' }],
    structuredContent: { a: 1 },
  });
  expect((await client.listPrompts()).prompts).toHaveLength(8);
  expect((await client.getPrompt({ name: 'explore_database' })).messages).toHaveLength(1);
  expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(4);
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

describe('a slow tool that reports nothing', () => {
  const TIMEOUT = 1_000;
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 2.5 * TIMEOUT));
    return { done: true };
  };

  it.concurrent.each([['2024-11-05'], ['2025-03-26'], ['2025-06-18'], ['2025-11-25'], ['2026-07-28']])(
    'does not time out for a client of %s that resets its time on progress',
    async (version) => {
      lively.tools.work = slow;
      const mode = version === '2026-07-28' ? ({ pin: version } as const) : 'legacy';
      const client = new Client(info, {
        versionNegotiation: { mode },
        ...(mode === 'legacy' && { supportedProtocolVersions: [version] }),
      });
      await client.connect(new StreamableHTTPClientTransport(new URL(lively.url)));
      const received: { progress: number; message?: string | undefined }[] = [];
      const result = await client.callTool(
        { name: 'work', arguments: {} },
        {
          timeout: TIMEOUT,
          resetTimeoutOnProgress: true,
          onprogress: (progress) => void received.push(progress),
        },
      );
      expect(result).toMatchObject({
        content: [{ text: expect.stringContaining('"done":true') as string }],
      });
      expect(received.length).toBeGreaterThan(3);
      expect(Math.max(...received.map(({ progress }) => progress))).toBeLessThan(0.00001);
      await client.close();
    },
  );

  it.concurrent('does not time out for the first client', async () => {
    lively.tools.work = slow;
    const client = new FirstClient(info);
    await client.connect(new FirstTransport(new URL(lively.url)));
    const result = await client.callTool({ name: 'work', arguments: {} }, undefined, {
      timeout: TIMEOUT,
      resetTimeoutOnProgress: true,
      onprogress: () => undefined,
    });
    expect(result).toMatchObject({ isError: false });
    await client.close();
  });
});
