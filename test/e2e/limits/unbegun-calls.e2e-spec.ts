import { beforeAll, describe, expect, it, vi } from 'vitest';
import { POSTS_POLICY, POSTS_SEED } from '../../fixtures/posts.fixture.js';
import {
  type Database,
  listLogged,
  type Service,
  startDatabase,
  startService,
} from '../../support/service.js';

const VERSION = '2026-07-28';
const LIMIT = 3;

/** Calls that no gate of a tool sees, each by an agent of its own. */
const UNBEGUN: readonly (readonly [agent: string, modern: boolean, more: object, meta?: object])[] = [
  ['legacy-list', false, { arguments: [1] }],
  ['modern-list', true, { arguments: [1] }],
  ['no-state', true, { arguments: { class_name: 'Post' }, requestState: 'x' }],
  ['no-answers', true, { arguments: { class_name: 'Post' }, inputResponses: [1] }],
  ['no-level', true, { arguments: {} }, { 'io.modelcontextprotocol/logLevel': 'loud' }],
];
const AGENTS = UNBEGUN.map(([agent]) => agent);

let database: Database;
let service: Service;
beforeAll(async () => {
  database = await startDatabase(POSTS_SEED);
  service = await startService({
    config: {
      database: { uri: database.uri, name: 'parley' },
      agents: Object.fromEntries(
        AGENTS.map((agent) => [agent, { tenantId: 'acme', rateLimit: LIMIT, rateWindow: 3600 }]),
      ),
      auth: AGENTS.map((agent) => ({ apiKey: `key-of-${agent}`, agent })),
      policy: POSTS_POLICY,
    },
  });
}, 60_000);

async function call(agent: string, modern: boolean, more: object, meta: object = {}): Promise<string> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientCapabilities': {},
    ...meta,
  };
  const params = { name: 'count_objects', ...more, ...(modern && { _meta }) };
  const headers = {
    'MCP-Protocol-Version': VERSION,
    'Mcp-Method': 'tools/call',
    'Mcp-Name': 'count_objects',
  };
  const response = await fetch(service.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      'X-MCP-API-Key': `key-of-${agent}`,
      ...(modern && headers),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  });
  return response.text();
}

describe('a call that the protocol refuses before any gate', () => {
  it.each<[string, boolean, object, object?]>(UNBEGUN.map(([...one]) => one))(
    'spends one of its agent’s calls and is recorded: %s',
    async (agent, modern, more, meta) => {
      const seen: string[] = [];
      for (let at = 0; at <= LIMIT; at += 1) seen.push(await call(agent, modern, more, meta));
      for (const answer of seen.slice(0, LIMIT)) expect(answer).not.toContain('rate_limited');
      expect(seen[LIMIT]).toContain('"parse.error_code":"rate_limited"');
      await vi.waitFor(() => {
        const records = listLogged(service, 'call').filter((record) => record['agent'] === agent);
        expect(records.map(({ tool, gate, code }) => [tool, gate, code])).toEqual([
          ...Array<unknown>(LIMIT).fill(['count_objects', 'protocol', 'invalid_argument']),
          ['count_objects', 'rate_limit', 'rate_limited'],
        ]);
      });
    },
  );
});
