import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as ClassicClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as ClassicTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const SOON = { timeout: 30_000, interval: 100 };
const TENANTS = ['acme', 'globex'] as const;
type Tenant = (typeof TENANTS)[number];

let cluster: Database;
let documents: MongoClient;
let service: Service;
beforeAll(async () => {
  cluster = await startDatabase({ schemas: [] });
  documents = new MongoClient(cluster.uri);
  for (const tenant of TENANTS)
    await documents
      .db(`t_${tenant}`)
      .collection('invoices')
      .insertOne({ number: `${tenant}-1` });
  service = await startService({
    config: {
      databases: {
        shop: { uri: 'embedded' },
        app: { uri: cluster.uri, storage: 'plain', name: 't_{tenant}' },
      },
      agents: Object.fromEntries(
        TENANTS.map((tenantId) => [tenantId, { tenantId, permissions: 'admin', rateLimit: 1_000_000 }]),
      ),
      auth: TENANTS.map((agent) => ({ apiKey: agent, agent })),
      policy: { classes: { Invoice: { database: 'app', collection: 'invoices' } } },
    },
  });
});
afterAll(async () => {
  await service?.stop();
  await documents?.close();
  await cluster?.stop();
});

const as = (agent: string) => ({ 'X-MCP-API-Key': agent });

/** Clients of both eras that note when the list of tools is another one. */
async function listen(tenant: Tenant) {
  const requestInit = { headers: as(tenant) };
  const classic = new ClassicClient({ name: 'classic', version: '1' });
  const modern = new ModernClient(
    { name: 'modern', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  const heard = new Set<string>();
  classic.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.add('classic'));
  modern.setNotificationHandler('notifications/tools/list_changed', () => void heard.add('modern'));
  await classic.connect(new ClassicTransport(new URL(service.url), { requestInit }) as never);
  await modern.connect(new ModernTransport(new URL(service.url), { requestInit }));
  await modern.listen({ toolsListChanged: true });
  return { heard, close: () => Promise.all([classic.close(), modern.close()]) };
}

let columns = 0;
/** Another program gives the collection a further column, and somebody of the tenant looks for what is not known yet. */
async function addColumn(tenant: Tenant): Promise<void> {
  const name = `column${(columns += 1)}`;
  const validator = { $jsonSchema: { properties: { [name]: { bsonType: 'string' } } } };
  await documents.db(`t_${tenant}`).command({ collMod: 'invoices', validator });
  await vi.waitFor(async () => {
    await callTool(service, 'query_class', { class_name: 'Nothing' }, as(tenant));
    const { wire } = await callTool(service, 'get_schema', { class_name: 'Invoice' }, as(tenant));
    expect(wire).toContain(name);
  }, SOON);
}

describe('a column that the database of one tenant alone gains', () => {
  it('is told to the clients of that tenant, and to nobody of another one', async () => {
    for (const tenant of TENANTS)
      await callTool(service, 'query_class', { class_name: 'Invoice' }, as(tenant));
    const [acme, globex] = [await listen('acme'), await listen('globex')];
    // The listening stream of a classic client opens by itself, at some time: until then nothing reaches it.
    await vi.waitFor(async () => {
      await addColumn('acme');
      expect([...acme.heard].sort()).toEqual(['classic', 'modern']);
    }, SOON);
    expect([...globex.heard]).toEqual([]);
    const { wire } = await callTool(service, 'get_schema', { class_name: 'Invoice' }, as('globex'));
    expect(wire).not.toMatch(/column\d/);
    acme.heard.clear();
    await vi.waitFor(async () => {
      await addColumn('globex');
      expect([...globex.heard].sort()).toEqual(['classic', 'modern']);
    }, SOON);
    expect([...acme.heard]).toEqual([]);
    await Promise.all([acme.close(), globex.close()]);
  });
});
