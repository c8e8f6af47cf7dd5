import { type Answer, nextId, post, readResult, type Service } from './service.js';

/** What a client that follows tasks declares. */
export const FOLLOWS_TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

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

/** The body of a request of 2026-07-28, and the headers that repeat it. */
function writeRequest(method: string, params: Record<string, unknown>, capabilities: object) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const named = params['name'] ?? params['taskId'] ?? params['uri'];
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: nextId(), method, params: { ...params, _meta } }),
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(typeof named === 'string' && { 'Mcp-Name': named }),
    },
  };
}

/** One request of 2026-07-28, of a client that follows tasks unless told otherwise. */
export function askModern(
  service: Pick<Service, 'url'>,
  method: string,
  params: Record<string, unknown>,
  headers: Record<string, string> = {},
  capabilities: object = FOLLOWS_TASKS,
): Promise<Answer> {
  const written = writeRequest(method, params, capabilities);
  return post(service, written.body, { ...written.headers, ...headers });
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
  };
  const written = writeRequest('tools/call', params, capabilities);
  const response = await fetch(service.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json',
      ...written.headers,
      ...headers,
    },
    body: written.body,
  });
  const text = await response.text();
  const body = JSON.parse(text) as ModernAnswer['body'];
  const { result } = body;
  const { isError, code, text: said } = readResult(result);
  return {
    status: response.status,
    text,
    body,
    result,
    requestState: result?.['requestState'] as string | undefined,
    toolError: isError ? { code, text: said } : undefined,
  };
}
