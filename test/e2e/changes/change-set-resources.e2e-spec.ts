import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { servePosts } from '../../support/posts-service.js';
import { callTool, type Service } from '../../support/service.js';

const proposing = { permissions: 'admin', rateLimit: 1_000_000, writes: 'proposed' };
const AGENTS = {
  support: { ...proposing, tenantId: 'acme' },
  colleague: { ...proposing, tenantId: 'acme' },
  foreign: { ...proposing, tenantId: 'globex' },
  reader: { tenantId: 'acme', rateLimit: 1_000_000 },
};
type AgentName = keyof typeof AGENTS;
const as = (agent: AgentName) => ({ 'X-MCP-API-Key': `key-of-${agent}` });
const SOON = { timeout: 20_000, interval: 25 };

let service: Service;
beforeAll(async () => {
  ({ service } = await servePosts(AGENTS, { subscriptions: { debounce: 0.05 } }));
}, 90_000);

const url = () => new URL(`${service.origin}/mcp`);
async function classicClient(agent: AgentName): Promise<ClassicClient> {
  const client = new ClassicClient({ name: 'test', version: '1' });
  await client.connect(new ClassicTransport(url(), { requestInit: { headers: as(agent) } }));
  return client;
}

async function propose(title: string): Promise<string> {
  const args = { class_name: 'Post', object_id: 'p00', fields: { title } };
  const answer = await callTool(service, 'update_object', args, as('support'));
  return (answer as unknown as { data: { change_set: string } }).data.change_set;
}
const discard = (set: string) => callTool(service, 'discard_changes', { change_set: set }, as('support'));

describe('A change set as a resource', () => {
  it('is listed and read by its agent as show_changes shows it, and is not there for anybody else', async () => {
    const set = await propose('Read');
    const uri = `parse://changes/${set}`;
    const client = await classicClient('support');
    const { resources } = await client.listResources();
    expect(resources.find((listed) => listed.uri === uri)?.description).toContain('open');
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain('parse://changes/{change_set}');
    const [content] = (await client.readResource({ uri })).contents as { text: string }[];
    const shown = JSON.parse(content?.text ?? '') as object;
    expect(shown).toMatchObject({ change_set: set, state: 'open', entries: [{ after: { title: 'Read' } }] });
    for (const agent of ['colleague', 'foreign', 'reader'] as const) {
      const other = await classicClient(agent);
      const seen = JSON.stringify(await other.listResources());
      expect(seen).not.toContain(set);
      const missing = await other
        .readResource({ uri: 'parse://changes/AAAAAAAAAAAAAAAAAAAA' })
        .catch((error: Error) => error.message);
      const withheld = await other.readResource({ uri }).catch((error: Error) => error.message);
      expect(withheld).toBe(missing);
      expect(withheld).toContain('not found');
      await expect(other.subscribeResource({ uri })).rejects.toThrow('not found');
      await other.close();
    }
    await client.close();
    await discard(set);
  });

  it('tells a subscriber of every change of its state, in both eras of the protocol', async () => {
    const set = await propose('Watched');
    const uri = `parse://changes/${set}`;
    const told = { classic: 0, modern: 0 };
    const classic = await classicClient('support');
    classic.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      if (params.uri === uri) told.classic += 1;
    });
    await classic.subscribeResource({ uri });
    const modern = new ModernClient(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    modern.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      if (params.uri === uri) told.modern += 1;
    });
    await modern.connect(new ModernTransport(url(), { requestInit: { headers: as('support') } }));
    const listening = await modern.listen({
      resourceSubscriptions: [uri, 'parse://changes/AAAAAAAAAAAAAAAAAAAA'],
    });
    expect(listening.honoredFilter).toEqual({ resourceSubscriptions: [uri] });
    await discard(set);
    await vi.waitFor(() => expect(Math.min(told.classic, told.modern)).toBeGreaterThan(0), SOON);
    const [content] = (await classic.readResource({ uri })).contents as { text: string }[];
    expect(content?.text).toContain('discarded');
    await Promise.all([classic.close(), modern.close()]);
  });
});
