import { nextId, type Service } from './service.js';

export interface ModernAnswer {
  readonly status: number;
  readonly text: string;
  readonly body: {
    readonly result?: Record<string, unknown>;
    readonly error?: { code: number; message: string };
  };
  readonly result: Record<string, unknown> | undefined;
  readonly requestState: string | undefined;
  readonly toolError: { readonly code: unknown; readonly text: string | undefined } | undefined;
}

export interface ModernOptions {
  readonly headers?: Record<string, string>;
  /** What this request declares. Default: forms. */
  readonly capabilities?: object;
  readonly requestState?: unknown;
  readonly inputResponses?: unknown;
}

/** One `tools/call` of 2026-07-28, and what came of it taken apart. */
export async function callModern(
  service: Pick<Service, 'url'>,
  name: string,
  args: object,
  { headers = {}, capabilities = { elicitation: {} }, requestState, inputResponses }: ModernOptions = {},
): Promise<ModernAnswer> {
  const params = {
    name,
    arguments: args,
    ...(requestState !== undefined && { requestState }),
    ...(inputResponses !== undefined && { inputResponses }),
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': capabilities,
    },
  };
  const response = await fetch(service.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': name,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: nextId(), method: 'tools/call', params }),
  });
  const text = await response.text();
  const body = JSON.parse(text) as ModernAnswer['body'];
  const { result } = body;
  const meta = result?.['_meta'] as Record<string, unknown> | undefined;
  const content = result?.['content'] as { text?: string }[] | undefined;
  return {
    status: response.status,
    text,
    body,
    result,
    requestState: result?.['requestState'] as string | undefined,
    toolError: result?.['isError']
      ? { code: meta?.['parse.error_code'], text: content?.[0]?.text }
      : undefined,
  };
}
