import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { afterAll, describe, expect, it } from 'vitest';
import { type Asked, edgeUnderTest } from '../testing/edge-under-test.js';
import { modern, MODERN_META } from '../testing/requests.js';

const REGIONAL = {
  type: 'object' as const,
  properties: { region: { type: 'string' as const, 'x-mcp-header': 'Region' } },
};

/**
 * The official server, stateless era only, with tools of the same names. Its wording differs; status, code and echoed
 * id must not, as long as one thing is wrong at a time.
 */
const official = createMcpHandler(
  () => {
    const server = new McpServer({ name: 'official', version: '1' });
    const anything = fromJsonSchema({ type: 'object' });
    const answer = () => ({ content: [{ type: 'text' as const, text: 'ok' }] });
    server.registerTool('echo', { inputSchema: anything }, answer);
    server.registerTool('regional', { inputSchema: fromJsonSchema(REGIONAL) }, answer);
    return server;
  },
  { legacy: 'reject' },
);
const ours = await edgeUnderTest();
afterAll(() => Promise.all([ours.stop(), official.close()]));

interface Verdict {
  readonly status: number;
  readonly code: unknown;
  readonly id: unknown;
  readonly data?: unknown;
}

function verdict(status: number, text: string): Verdict {
  if (text === '') return { status, code: undefined, id: undefined };
  const { id = null, error } = JSON.parse(text) as { id?: unknown; error?: { code: number; data?: unknown } };
  return { status, code: error?.code, id, ...(error?.code === -32022 && { data: error.data }) };
}

async function askOfficial({ headers = {}, body }: Asked): Promise<Verdict> {
  const sent = Object.entries(headers).filter(([, value]) => typeof value === 'string') as [string, string][];
  const request = new Request('http://localhost/mcp', {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      ...Object.fromEntries(sent),
    },
    body: JSON.stringify(body),
  });
  const response = await official.fetch(request);
  return verdict(response.status, await response.text());
}

async function askOurs(asked: Asked): Promise<Verdict> {
  const { status, text } = await ours.ask(asked);
  return verdict(status, text);
}

const list = modern('tools/list');
const echo = (headers: Asked['headers'] = {}) =>
  modern('tools/call', { name: 'echo', arguments: {} }, headers);
const regional = (headers: Asked['headers'], args: object = { region: 'eu' }) =>
  modern('tools/call', { name: 'regional', arguments: args }, headers);
const withBody = (body: object): Asked => ({ ...list, body: { ...(list.body as object), ...body } });
const withMeta = (meta: unknown, headers: Asked['headers'] = {}): Asked => ({
  headers: { ...list.headers, ...headers },
  body: { ...(list.body as object), params: { _meta: meta } },
});
const withoutCapabilities = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
const version = (value: unknown) => ({ ...MODERN_META, 'io.modelcontextprotocol/protocolVersion': value });

describe('agrees with the official server on', () => {
  it.each<[string, Asked]>([
    ['a well-formed request', list],
    ['a well-formed call', echo()],
    ['a name in base64', echo({ 'Mcp-Name': '=?base64?ZWNobw==?=' })],
    ['white space around a name', echo({ 'Mcp-Name': '  echo  ' })],
    ['a header that nobody mirrors', modern('tools/list', {}, { 'Mcp-Name': 'anything' })],
    ['discovery', modern('server/discover')],
    ['a text id', withBody({ id: 'seven' })],
    ['an id of zero', withBody({ id: 0 })],
    ['no JSON-RPC version', withBody({ jsonrpc: undefined })],
    ['another JSON-RPC version', withBody({ jsonrpc: '1.0' })],
    ['a null id', withBody({ id: null })],
    ['a fraction as id', withBody({ id: 1.5 })],
    ['an object as id', withBody({ id: {} })],
    ['no method', withBody({ method: undefined })],
    ['an array', { ...list, body: [list.body] }],
    ['an empty array', { ...list, body: [] }],
    ['no params', withBody({ params: undefined })],
    ['no envelope', withBody({ params: {} })],
    ['no client capabilities', withMeta(withoutCapabilities)],
    [
      'client capabilities that are a list',
      withMeta({ ...MODERN_META, 'io.modelcontextprotocol/clientCapabilities': [] }),
    ],
    ['a version that is a number', withMeta(version(5))],
    ['no version header', modern('tools/list', {}, { 'MCP-Protocol-Version': null })],
    ['another version in the header', modern('tools/list', {}, { 'MCP-Protocol-Version': '2025-11-25' })],
    ['a version to come', withMeta(version('2099-01-01'), { 'MCP-Protocol-Version': '2099-01-01' })],
    [
      'a legacy version in the envelope',
      withMeta(version('2025-11-25'), { 'MCP-Protocol-Version': '2025-11-25' }),
    ],
    ['no method header', modern('tools/list', {}, { 'Mcp-Method': null })],
    ['another method in the header', modern('tools/list', {}, { 'Mcp-Method': 'tools/call' })],
    ['the method header in another case', modern('tools/list', {}, { 'Mcp-Method': 'Tools/List' })],
    ['no name header', echo({ 'Mcp-Name': null })],
    ['another name in the header', echo({ 'Mcp-Name': 'other' })],
    ['base64 without padding', echo({ 'Mcp-Name': '=?base64?ZWNobw?=' })],
    ['a prompt name that is not mirrored', modern('prompts/get', { name: 'p' }, { 'Mcp-Name': 'q' })],
    [
      'a resource address that is not mirrored',
      modern('resources/read', { uri: 'a://b' }, { 'Mcp-Name': null }),
    ],
    ['an unknown tool', modern('tools/call', { name: 'nope', arguments: {} })],
    ['a mirrored parameter', regional({ 'Mcp-Param-Region': 'eu' })],
    ['a mirrored parameter that differs', regional({ 'Mcp-Param-Region': 'us' })],
    ['a mirrored parameter without its header', regional({})],
    ['an absent parameter', regional({ 'Mcp-Param-Region': 'eu' }, {})],
    ['a removed method', modern('ping')],
    ['the handshake inside an envelope', modern('initialize')],
    ['an unknown method', modern('nope/nothing')],
    [
      'a notification',
      {
        ...list,
        body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
        headers: { 'MCP-Protocol-Version': '2026-07-28' },
      },
    ],
    [
      'a notification with another version in its header',
      {
        headers: { 'MCP-Protocol-Version': '2026-07-28' },
        body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { _meta: version('2025-11-25') } },
      },
    ],
    [
      'a notification with another method in its header',
      {
        headers: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'x' },
        body: { jsonrpc: '2.0', method: 'notifications/cancelled' },
      },
    ],
  ])('%s', async (_, asked) => {
    expect(await askOurs(asked)).toEqual(await askOfficial(asked));
  });
});
