import type { RateLimiter } from '#core';
import type { McpEdgeOptions } from '../http/edge-dependencies.js';
import type { Asked } from './edge-under-test.js';
import { modern, MODERN_META, ping } from './requests.js';

/** One row per refusal: what is sent, and the whole answer. */
export interface CheckRefusal {
  readonly requestCheck: string;
  readonly when: string;
  readonly asked: Asked;
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly options?: McpEdgeOptions;
  /** Of the answer. Default null. */
  readonly id?: unknown;
  readonly data?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

type Expected = Pick<CheckRefusal, 'options' | 'id' | 'data' | 'headers'>;

function refusal(
  requestCheck: string,
  when: string,
  asked: Asked,
  [status, code, message]: readonly [number, number, string],
  more: Expected = {},
): CheckRefusal {
  return { requestCheck, when, asked, status, code, message, ...more };
}

export const deep = (levels: number) =>
  `{"jsonrpc":"2.0","method":"ping","params":${'['.repeat(levels)}${']'.repeat(levels)}}`;
const exhausted: RateLimiter = {
  check: () => Promise.resolve({ retryAfter: 1.2, limit: 1, window: 60 }),
};
const brokenLimiter: RateLimiter = { check: () => Promise.reject(new Error('down')) };
const big = 'x'.repeat(200);

const withMeta = (meta: unknown): Asked => {
  const asked = modern('tools/list');
  return { ...asked, body: { jsonrpc: '2.0', id: 7, method: 'tools/list', params: { _meta: meta } } };
};

const mismatch = (header: string) =>
  [400, -32020, `Header mismatch: ${header} does not mirror the body`] as const;
const unsupported = { supported: ['2026-07-28'], requested: '2099-01-01' };

const TOO_MANY_HEADERS = [
  431,
  -32600,
  'Request Header Fields Too Large: send fewer than 1000 headers',
] as const;
const NOT_FOUND = [404, -32601, 'Not Found'] as const;
const MALFORMED_HOST = [400, -32600, 'Invalid Request: Host is not host[:port]'] as const;
const FOREIGN_HOST = [403, -32700, 'Host not allowed'] as const;
const TOO_MANY = [429, -32000, 'Too Many Requests'] as const;
const ONLY_POST = [
  405,
  -32600,
  'Method Not Allowed: send messages by POST; GET and DELETE are for sessions',
] as const;
const TOO_LARGE = [413, -32700, 'Payload Too Large: body exceeds 100 bytes'] as const;
const NOT_JSON_TYPE = [415, -32700, 'Unsupported Media Type: Content-Type must be application/json'] as const;
const FOREIGN_ORIGIN = [403, -32700, 'Origin not allowed'] as const;
const NO_CUSTOM_HEADER = [403, -32700, 'Required custom header missing or invalid'] as const;
const NOT_JSON = [400, -32700, 'Parse error: invalid JSON'] as const;
const NOT_A_MESSAGE = [400, -32600, 'Invalid Request'] as const;
const expectMalformed = (key: string) =>
  [400, -32602, `Invalid params: _meta["io.modelcontextprotocol/${key}"] is missing or malformed`] as const;

export const REFUSALS: readonly CheckRefusal[] = [
  refusal(
    'whole-headers',
    'more headers than Node keeps',
    { headers: { D0: Array<string>(1_000).fill('1') }, body: ping() },
    TOO_MANY_HEADERS,
  ),
  refusal('path', 'a sub-path', { path: '/mcp/x', body: ping() }, NOT_FOUND),
  refusal('path', 'dots', { path: '/mcp/..', body: ping() }, NOT_FOUND),
  refusal('path', 'two slashes', { path: '/mcp//', body: ping() }, NOT_FOUND),
  refusal('path', 'another path', { path: '/other', body: ping() }, NOT_FOUND),
  refusal('host', 'a foreign name', { headers: { Host: 'evil.example' }, body: ping() }, FOREIGN_HOST),
  refusal(
    'host',
    'a loopback name as password',
    { headers: { Host: 'evil.example:80@localhost' }, body: ping() },
    MALFORMED_HOST,
  ),
  refusal(
    'host',
    'a port that is none',
    { headers: { Host: 'localhost:evil' }, body: ping() },
    MALFORMED_HOST,
  ),
  refusal('pre-auth-limit', 'exhausted', { body: ping() }, TOO_MANY, {
    options: { preAuthRateLimiter: exhausted },
    headers: { 'retry-after': '2' },
  }),
  refusal('pre-auth-limit', 'the limiter fails', { body: ping() }, TOO_MANY, {
    options: { preAuthRateLimiter: brokenLimiter },
  }),
  refusal('delete', 'no session is named', { method: 'DELETE' }, [400, -32600, 'Missing Mcp-Session-Id']),
  refusal(
    'delete',
    'the id has other characters',
    { method: 'DELETE', headers: { 'Mcp-Session-Id': 'a b' } },
    [400, -32600, 'Invalid Mcp-Session-Id'],
  ),
  refusal(
    'get',
    'no stream is asked for',
    { method: 'GET', headers: { Accept: 'application/json, text/event-stream;q=0' } },
    ONLY_POST,
    { headers: { allow: 'GET, POST, DELETE' } },
  ),
  refusal('verb', 'another verb', { method: 'PUT', body: ping() }, ONLY_POST, {
    headers: { allow: 'GET, POST, DELETE' },
  }),
  refusal(
    'length-required',
    'chunked',
    { headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': null }, body: ping() },
    [
      411,
      -32700,
      'Length Required: Content-Length header is required and Transfer-Encoding: chunked is not accepted (server.requireContentLength: false accepts it)',
    ],
  ),
  refusal('declared-length', 'too long', { body: big }, TOO_LARGE, { options: { maxBodySize: 100 } }),
  refusal('media-type', 'text', { headers: { 'Content-Type': 'text/plain' }, body: ping() }, NOT_JSON_TYPE),
  refusal('media-type', 'compressed', { headers: { 'Content-Encoding': 'gzip' }, body: ping() }, [
    415,
    -32700,
    'Unsupported Media Type: Content-Encoding must be identity',
  ]),
  refusal('media-type', 'none', { headers: { 'Content-Type': null }, body: ping() }, NOT_JSON_TYPE),
  refusal(
    'media-type',
    'a look-alike',
    { headers: { 'Content-Type': 'application/jsonp' }, body: ping() },
    NOT_JSON_TYPE,
  ),
  ...[
    'application/json;q=0',
    'text/event-stream, application/json; q=0.000',
    'Application/JSON ; charset=utf-8 ; Q=0, text/plain',
    'text/event-stream, */*;q=0',
    '*/*, application/*;q=0.0',
  ].map((accept) =>
    refusal('accept', accept, { headers: { Accept: accept }, body: ping() }, [
      406,
      -32600,
      'Not Acceptable: answers are JSON or events, and Accept must not give application/json the weight 0',
    ]),
  ),
  refusal(
    'origin',
    'a foreign page',
    { headers: { Origin: 'https://evil.example' }, body: ping() },
    FOREIGN_ORIGIN,
  ),
  refusal('origin', 'an opaque page', { headers: { Origin: 'null' }, body: ping() }, FOREIGN_ORIGIN),
  refusal('custom-header', 'missing', { body: ping() }, NO_CUSTOM_HEADER, {
    options: { requireCustomHeader: 'X-MCP-Client' },
  }),
  refusal(
    'custom-header',
    'another value',
    { headers: { 'X-MCP-Client': 'b' }, body: ping() },
    NO_CUSTOM_HEADER,
    { options: { requireCustomHeader: { 'X-MCP-Client': 'a' } } },
  ),
  refusal(
    'body',
    'too long without a declared length',
    { headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': null }, body: big },
    TOO_LARGE,
    { options: { maxBodySize: 100, requireContentLength: false } },
  ),
  refusal('json', 'broken', { body: '{"method":' }, NOT_JSON),
  refusal('json', 'no UTF-8', { body: Buffer.from([0x22, 0xff, 0x22]) }, NOT_JSON),
  refusal('json', '21 levels deep', { body: deep(20) }, NOT_JSON),
  refusal('message-shape', 'an empty body', { body: '' }, NOT_A_MESSAGE),
  refusal('message-shape', 'an array without a session', { body: [ping()] }, NOT_A_MESSAGE),
  refusal('message-shape', 'an object as id', { body: ping({}) }, NOT_A_MESSAGE),
  refusal('message-shape', 'a list as id', { body: ping([1]) }, NOT_A_MESSAGE),
  refusal('message-shape', 'a scalar', { body: '"ping"' }, NOT_A_MESSAGE),
  refusal(
    'message-shape',
    'a method that is no text',
    { body: { jsonrpc: '2.0', id: 1, method: 5 } },
    NOT_A_MESSAGE,
  ),
  refusal('message-shape', 'an empty method', { body: { jsonrpc: '2.0', id: 1, method: '' } }, NOT_A_MESSAGE),
  refusal(
    'message-shape',
    'a response without an outcome',
    { body: { jsonrpc: '2.0', id: 1 } },
    NOT_A_MESSAGE,
  ),
  ...[undefined, null, '1.0', '2.1', '2.0 ', 2, '', ['2.0']].flatMap((jsonrpc) => [
    refusal(
      'json-rpc',
      `${String(jsonrpc)} as the version of JSON-RPC`,
      { body: { ...ping(), jsonrpc } },
      NOT_A_MESSAGE,
      { id: 1 },
    ),
    refusal(
      'json-rpc',
      `${String(jsonrpc)} as the version of JSON-RPC, in the stateless era`,
      {
        ...modern('tools/list'),
        body: { jsonrpc, id: 7, method: 'tools/list', params: { _meta: MODERN_META } },
      },
      NOT_A_MESSAGE,
      { id: 7 },
    ),
  ]),
  refusal(
    'json-rpc',
    'a null id',
    {
      ...modern('tools/list'),
      body: { jsonrpc: '2.0', id: null, method: 'tools/list', params: { _meta: MODERN_META } },
    },
    NOT_A_MESSAGE,
  ),
  refusal(
    'envelope',
    'no _meta, but a header of the era',
    { ...modern('tools/list'), body: { jsonrpc: '2.0', id: 7, method: 'tools/list' } },
    expectMalformed('protocolVersion'),
    { id: 7 },
  ),
  refusal(
    'envelope',
    'a version that is no text',
    withMeta({ ...MODERN_META, 'io.modelcontextprotocol/protocolVersion': 5 }),
    expectMalformed('protocolVersion'),
    { id: 7 },
  ),
  refusal(
    'envelope',
    'no client capabilities',
    withMeta({ 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }),
    expectMalformed('clientCapabilities'),
    { id: 7 },
  ),
  refusal(
    'version-header',
    'missing',
    modern('tools/list', {}, { 'MCP-Protocol-Version': null }),
    mismatch('MCP-Protocol-Version'),
    { id: 7 },
  ),
  refusal(
    'version-header',
    'another version',
    modern('tools/list', {}, { 'MCP-Protocol-Version': '2025-06-18' }),
    mismatch('MCP-Protocol-Version'),
    { id: 7 },
  ),
  refusal(
    'method-header',
    'missing',
    modern('tools/list', {}, { 'Mcp-Method': null }),
    mismatch('Mcp-Method'),
    { id: 7 },
  ),
  refusal(
    'method-header',
    'another method',
    modern('tools/list', {}, { 'Mcp-Method': 'tools/call' }),
    mismatch('Mcp-Method'),
    { id: 7 },
  ),
  refusal(
    'name-header',
    'missing',
    modern('tools/call', { name: 'echo' }, { 'Mcp-Name': null }),
    mismatch('Mcp-Name'),
    { id: 7 },
  ),
  refusal(
    'name-header',
    'another tool',
    modern('tools/call', { name: 'echo' }, { 'Mcp-Name': 'wait' }),
    mismatch('Mcp-Name'),
    { id: 7 },
  ),
  refusal(
    'name-header',
    'broken base64',
    modern('tools/call', { name: 'echo' }, { 'Mcp-Name': '=?base64?ZWNobw?=' }),
    mismatch('Mcp-Name'),
    { id: 7 },
  ),
  refusal(
    'served-version',
    'a version to come',
    {
      ...withMeta({ ...MODERN_META, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }),
      headers: { 'MCP-Protocol-Version': '2099-01-01', 'Mcp-Method': 'tools/list' },
    },
    [400, -32022, 'Unsupported protocol version'],
    { id: 7, data: unsupported },
  ),
  refusal(
    'served-version',
    'a legacy version in the body',
    {
      ...withMeta({ ...MODERN_META, 'io.modelcontextprotocol/protocolVersion': '2025-11-25' }),
      headers: { 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Method': 'tools/list' },
    },
    [400, -32022, 'Unsupported protocol version'],
    { id: 7, data: { supported: ['2026-07-28'], requested: '2025-11-25' } },
  ),
  refusal('served-method', 'a removed method', modern('ping'), [404, -32601, 'Method not found: ping'], {
    id: 7,
  }),
  refusal(
    'legacy-version',
    'a version nobody speaks',
    { headers: { 'MCP-Protocol-Version': '1999-01-01' }, body: ping('a') },
    [400, -32600, 'Unsupported MCP-Protocol-Version: 1999-01-01'],
    { id: 'a' },
  ),
  refusal('authenticate', 'not recognised', { headers: { 'X-MCP-API-Key': 'wrong' }, body: ping() }, [
    401,
    -32001,
    'Unauthorized',
  ]),
  refusal(
    'authenticate',
    'the authenticator fails',
    { headers: { 'X-MCP-API-Key': 'broken' }, body: ping() },
    [500, -32603, 'Internal error'],
  ),
  refusal('request-limit', 'exhausted', { body: { ...ping(7), method: 'tools/list' } }, TOO_MANY, {
    options: { requestLimiter: exhausted },
    headers: { 'retry-after': '2' },
    id: 7,
  }),
  refusal('request-limit', 'the limiter fails', { body: { ...ping(7), method: 'tools/list' } }, TOO_MANY, {
    options: { requestLimiter: brokenLimiter },
    headers: { 'retry-after': '5' },
    id: 7,
  }),
  refusal('session', 'strict and missing', { body: ping() }, [400, -32600, 'Missing Mcp-Session-Id'], {
    options: { sessions: 'strict' },
    id: 1,
  }),
  refusal(
    'session',
    'strict and unknown',
    { headers: { 'Mcp-Session-Id': 'x' }, body: ping() },
    [404, -32001, 'Session not found'],
    { options: { sessions: 'strict' }, id: 1 },
  ),
];
