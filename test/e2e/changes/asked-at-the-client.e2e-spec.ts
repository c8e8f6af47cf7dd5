import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import { callTool, type Database, type Service, startDatabase, startService } from '../../support/service.js';

const AGENT = { permissions: 'admin', tenantId: 'acme', rateLimit: 1_000_000, writes: 'proposed' };
const headers = { 'X-MCP-API-Key': 'key-of-support' };

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  service = await startService({
    config: {
      server: { stateKey: 'a key of thirty-two characters, or more' },
      agents: { support: AGENT },
      auth: [{ apiKey: 'key-of-support', agent: 'support' }],
      policy: POSTS_POLICY,
      database: { uri: database.uri, name: 'parley' },
    },
    env: { PARSE_AGENT_ALLOW_WRITE_TOOLS: 'true', PARSE_AGENT_ALLOW_RAW_CRUD: 'true' },
  });
}, 90_000);

const call = (name: string, args: object) => callTool(service, name, args, headers);
async function propose(title: string): Promise<string> {
  const args = { class_name: 'Post', object_id: 'p00', fields: { title } };
  return String((await call('update_object', args)).data['change_set']);
}

/** A client whose person thinks about a set until it is not asked for any more. */
async function submitted(set: string) {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
  const person = { isAsked: false, isWithdrawn: false };
  client.setRequestHandler(ElicitRequestSchema, (_request, { signal }) => {
    person.isAsked = true;
    return new Promise((resolve) =>
      signal.addEventListener('abort', () => {
        person.isWithdrawn = true;
        resolve({ action: 'cancel' });
      }),
    );
  });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(service.url), { requestInit: { headers } }) as never,
  );
  const args = { title: 'a set', reason: 'it is needed', change_set: set };
  const answered = client.callTool({ name: 'submit_changes', arguments: args }) as Promise<{
    isError?: boolean;
    content: { text: string }[];
  }>;
  await vi.waitFor(() => expect(person.isAsked).toBe(true), { timeout: 20_000, interval: 25 });
  return { client, person, answered };
}

describe('The question about a change set at the client', () => {
  it.each(['discard_changes', 'refresh_changes'])('is withdrawn by %s, and the call ends', async (tool) => {
    const set = await propose('Withdrawn');
    const { client, person, answered } = await submitted(set);
    const other = await propose('Of another set');
    await call('discard_changes', { change_set: other });
    expect(person.isWithdrawn).toBe(false);
    await call(tool, { change_set: set });
    const { isError, content } = await answered;
    expect([isError, content[0]?.text]).toEqual([true, expect.stringContaining('no longer asked for')]);
    await vi.waitFor(() => expect(person.isWithdrawn).toBe(true), { timeout: 20_000, interval: 25 });
    await call('discard_changes', { change_set: set });
    await client.close();
  });
});
