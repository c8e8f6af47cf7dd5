import type { Asked } from './edge-under-test.js';

export const ping = (id: unknown = 1) => ({ jsonrpc: '2.0', id, method: 'ping' });

export const initialize = (protocolVersion = '2025-06-18') => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion, capabilities: { roots: {} }, clientInfo: { name: 'test', version: '1' } },
});

export const MODERN_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A well-formed request of the stateless era. */
export function modern(method: string, params: object = {}, headers: Asked['headers'] = {}): Asked {
  const named = (params as { name?: unknown; uri?: unknown }).name ?? (params as { uri?: unknown }).uri;
  return {
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(typeof named === 'string' && { 'Mcp-Name': named }),
      ...headers,
    },
    body: { jsonrpc: '2.0', id: 7, method, params: { _meta: MODERN_META, ...params } },
  };
}
