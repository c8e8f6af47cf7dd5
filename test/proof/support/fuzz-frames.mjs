import { SET_MARK } from './fuzz-inputs.mjs';
import {
  anyValue,
  define,
  edgeName,
  edgeText,
  largeLiteral,
  mutated,
  mutatedText,
  objectOf,
  placesOf,
} from './seeded-random.mjs';

/* Requests of every revision as bytes: well made, mutated, contradicting themselves, or nothing of the kind. */

const LEGACY = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const MODERN = '2026-07-28';
const VERSIONS = [...LEGACY, MODERN, '1999-01-01', '2027-01-01', 'x', '', '2026-07-28 '];

/** Stands for the id of a session in the frames of HTTP. */
export const SESSION_MARK = '@session';

const NOTIFICATIONS = [
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
  'notifications/x',
];

function paramsOf(random, method, inputs) {
  const uri = () =>
    `parse://${random.pick([...inputs.classes, '_Session', 'changes', edgeText(random)])}/${random.pick(['schema', 'count', 'samples', SET_MARK, edgeText(random)])}`;
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: random.pick(VERSIONS),
        capabilities: random.pick([{}, { roots: {} }, { elicitation: {} }, anyValue(random, 1)]),
        clientInfo: { name: 'fuzz', version: '1' },
      };
    case 'tools/call':
      return inputs.call(random);
    case 'tools/list':
      return random.pick([{}, { category: 'query' }, { cursor: edgeText(random) }, anyValue(random, 1)]);
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return { uri: uri() };
    case 'prompts/get':
      return {
        name: random.pick(['explore_database', 'class_overview', edgeText(random)]),
        arguments: objectOf(
          random.list(2, () => [random.pick(['class_name', edgeName(random)]), edgeText(random)]),
        ),
      };
    case 'completion/complete':
      return {
        ref: random.pick([
          { type: 'ref/prompt', name: 'class_overview' },
          { type: 'ref/resource', uri: uri() },
          anyValue(random, 1),
        ]),
        argument: { name: random.pick(['class_name', edgeName(random)]), value: edgeText(random) },
      };
    case 'logging/setLevel':
      return { level: random.pick(['debug', 'error', edgeText(random)]) };
    case 'tasks/get':
    case 'tasks/cancel':
    case 'tasks/result':
      return { taskId: edgeText(random) };
    case 'notifications/cancelled':
      return { requestId: edgeText(random), reason: edgeText(random) };
    default:
      return random.pick([undefined, {}, {}, anyValue(random, 1)]);
  }
}

const METHODS = [
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'tools/call',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'logging/setLevel',
  'tasks/get',
  'tasks/list',
  'tasks/cancel',
  'tasks/result',
  'sampling/createMessage',
  'roots/list',
];

const idOf = (random, number) =>
  random.weighted(
    [8, () => number],
    [1, () => `id-${number}`],
    [0.3, () => random.pick([0, -1, 1.5, 2 ** 53, '', 'x'.repeat(2_000), true, null])],
  );

/** A message that a client might send; its number makes its id. */
function message(random, inputs, number) {
  if (random.chance(0.06))
    return {
      jsonrpc: '2.0',
      method: random.pick(NOTIFICATIONS),
      params: paramsOf(random, 'notifications/cancelled', inputs),
    };
  if (random.chance(0.02)) return { jsonrpc: '2.0', id: idOf(random, number), result: anyValue(random, 1) };
  const method = random.chance(0.96) ? random.pick(METHODS) : edgeName(random);
  const params = paramsOf(random, method, inputs);
  return { jsonrpc: '2.0', id: idOf(random, number), method, ...(params !== undefined && { params }) };
}

function withMeta(random, given) {
  const params =
    given.params !== null && typeof given.params === 'object' && !Array.isArray(given.params)
      ? given.params
      : {};
  return {
    ...given,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': random.chance(0.95) ? MODERN : random.pick(VERSIONS),
        'io.modelcontextprotocol/clientCapabilities': {},
        ...(random.chance(0.1) && {
          'io.modelcontextprotocol/logLevel': random.pick(['debug', edgeText(random)]),
        }),
        ...(random.chance(0.1) && { progressToken: anyValue(random, 0) }),
      },
    },
  };
}

/** Stands for a number in a value that is about to be written. */
const LITERAL_MARK = '@literal';

/** The JSON of a value with a number in the place of one of its members that no double holds. */
function withLargeNumber(random, given) {
  const value = structuredClone({ given });
  const places = placesOf(value.given);
  if (places.length === 0) return largeLiteral(random);
  const { container, key } = random.pick(places);
  define(container, key, LITERAL_MARK);
  return JSON.stringify(value.given).replace(`"${LITERAL_MARK}"`, largeLiteral(random));
}

/** The JSON of a value in which one object has a member twice, under one spelling or two. */
function withRepeatedMember(random, given) {
  const value = structuredClone({ given });
  const places = placesOf(value.given).filter(({ container }) => !Array.isArray(container));
  if (places.length === 0) return '{"a":1,"\\u0061":1}';
  const { container, key } = random.pick(places);
  const again = JSON.stringify(container[key] ?? null);
  define(container, key, LITERAL_MARK);
  const name = random.chance(0.5) || key === '' ? JSON.stringify(key) : escaped(key);
  const other = random.pick([again, 'null', '{}', '"x"']);
  return JSON.stringify(value.given).replace(`"${LITERAL_MARK}"`, () => `${again},${name}:${other}`);
}

/** A name as JSON, its first character in an escape. */
const escaped = (name) =>
  `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${JSON.stringify(name.slice(1)).slice(1)}`;

/** Texts that no serialiser writes: repeated members, numbers without end, nesting, lone surrogates. */
function oddText(random, text) {
  return random.weighted(
    [2, () => text.replace('{', `{"id":${random.pick(['1', '"a"', 'null', '{}'])},`)],
    [2, () => text.replace('{', '{"method":"tools/list",')],
    [
      1,
      () =>
        text.replace(
          /"id":\d+/,
          `"id":${random.pick(['1e999', '-0', '1E+2', '9'.repeat(400), '0.1e-400', '01', '+1', 'NaN', '0x10'])}`,
        ),
    ],
    [1, () => text.replace(/:\{/, ':{"__proto__":{"isAdmin":true},')],
    [1, () => '['.repeat(1 + random.below(3_000)) + ']'.repeat(random.below(3_000))],
    [1, () => '{"a":'.repeat(1 + random.below(200)) + '1' + '}'.repeat(random.below(200))],
    [1, () => text.replace('"2.0"', '"2.0","x":"\\ud800\\u0000"')],
    [1, () => `${text} ${text}`],
    [
      0.3,
      () => text.replace(/"params":/, `"pad":"${'y'.repeat(random.pick([100_000, 1_100_000]))}","params":`),
    ],
    [
      1,
      () =>
        random.pick([
          '',
          ' ',
          'null',
          '1',
          '"x"',
          '[]',
          '[[]]',
          '{}',
          '{"jsonrpc":"2.0"}',
          '[null]',
          'true',
          '\n',
        ]),
    ],
    [2, () => mutatedText(random, text)],
  );
}

function brokenBytes(random, bytes) {
  const copy = Buffer.from(bytes);
  for (let times = 1 + random.below(4); times > 0 && copy.length > 0; times -= 1)
    copy[random.below(copy.length)] = random.below(256);
  return copy;
}

/** The bytes of a body, and the message it was made from. */
function bodyOf(random, inputs, number) {
  const modern = random.chance(0.4);
  const one = () => {
    const plain = message(random, inputs, number);
    return modern ? withMeta(random, plain) : plain;
  };
  const batch = random.chance(0.05);
  const made = batch ? random.list(random.chance(0.1) ? 60 : 4, one) : one();
  const value = random.weighted([6, () => made], [3, () => mutated(random, made, 1 + random.below(2), true)]);
  const text = JSON.stringify(value) ?? 'null';
  const bytes = random.weighted(
    [8, () => Buffer.from(text)],
    [0.5, () => Buffer.from(withLargeNumber(random, value))],
    [0.3, () => Buffer.from(withRepeatedMember(random, value))],
    [0.2, () => Buffer.from(`\uFEFF${text}`)],
    [1.2, () => Buffer.from(oddText(random, text))],
    [0.6, () => brokenBytes(random, Buffer.from(text))],
  );
  return { bytes, made, modern };
}

/** A line of a client on a pipe. */
export function stdioFrame(random, inputs, number) {
  const { bytes } = bodyOf(random, inputs, number);
  const line = Buffer.from(bytes.map((byte) => (byte === 10 || byte === 13 ? 32 : byte)));
  return { line: line.toString('base64') };
}

/** A request over HTTP. `framed`: it is one by the rules of HTTP, so that an answer is due. */
export function httpFrame(random, inputs, number, keys) {
  const { bytes, made, modern } = bodyOf(random, inputs, number);
  const method = typeof made?.method === 'string' ? made.method : 'x';
  const named = made?.params?.name ?? made?.params?.uri;
  const headers = {
    Host: 'localhost',
    'Content-Type': 'application/json',
    Accept: random.pick(['application/json, text/event-stream', 'application/json', '*/*']),
    'X-MCP-API-Key': random.chance(0.95) ? random.pick(keys) : edgeText(random),
    ...(modern
      ? {
          'MCP-Protocol-Version': MODERN,
          'Mcp-Method': method,
          ...(typeof named === 'string' && { 'Mcp-Name': named }),
        }
      : random.chance(0.5) && { 'MCP-Protocol-Version': random.pick(LEGACY) }),
  };
  // Only a session of the revision that has batches may send one; the client puts the id of its key in the place of the mark.
  const session = !modern && (Array.isArray(made) ? random.chance(0.8) : random.chance(0.2));
  if (session) {
    headers['Mcp-Session-Id'] = SESSION_MARK;
    headers['MCP-Protocol-Version'] = '2025-03-26';
  }
  if (random.chance(0.15)) contradict(random, headers);
  if (random.chance(0.01)) manyHeaders(random, headers);
  const verb =
    session || random.chance(0.96)
      ? 'POST'
      : random.pick(['GET', 'DELETE', 'PUT', 'OPTIONS', 'HEAD', 'PATCH', 'TRACE', 'BREW']);
  const path = random.chance(0.97)
    ? '/mcp'
    : random.pick([
        '/',
        '/mcp/',
        '/mcp/x',
        '/mcp?x=1',
        '/mcp%2f',
        '//mcp',
        '/health',
        '/ready',
        '/tools',
        '/approvals',
        '/exports/x',
        '/.well-known/oauth-protected-resource',
        '/%00',
        '/mcp/../mcp',
      ]);
  const sent = {
    verb,
    path,
    headers: Object.entries(headers).map(([name, value]) => [name, headerText(value)]),
    body: bytes.toString('base64'),
  };
  if (!random.chance(0.04)) return { ...sent, framed: true };
  return { ...sent, framed: false, head: mutatedHead(random, sent) };
}

/** What a header can carry. */
const headerText = (value) =>
  String(value)
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, 4_000)
    .trim();

/** As many short headers as fit into 16 KiB: Node drops those after the first thousand, unless it is told otherwise. */
function manyHeaders(random, headers) {
  const most = random.pick([990, 1_000, 1_001, 1_300]);
  for (let at = 0; at < most; at += 1) headers[`d${at}`] = '1';
}

function contradict(random, headers) {
  const names = [
    'MCP-Protocol-Version',
    'Mcp-Method',
    'Mcp-Name',
    'Mcp-Session-Id',
    'Content-Type',
    'Accept',
    'Origin',
    'Host',
    'Authorization',
    'Last-Event-ID',
    'X-Parse-Session-Token',
    'Traceparent',
    'X-Request-Id',
    'Mcp_Method',
    'Content-Encoding',
    'Expect',
    'X-Forwarded-For',
  ];
  for (const name of random.some(names, 3))
    define(
      headers,
      name,
      random.weighted(
        [2, () => random.pick(VERSIONS)],
        [2, () => random.pick(METHODS)],
        [3, () => edgeText(random)],
        [
          1,
          () =>
            random.pick([
              'text/plain',
              'application/json; charset=latin1',
              'Bearer x',
              'gzip',
              '100-continue',
              'https://evil.example',
              'a, b',
              'localhost:99999',
            ]),
        ],
      ),
    );
}

function mutatedHead(random, { verb, path, headers }) {
  const lines = [
    `${verb} ${path} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${random.pick(['1', '-1', 'x', '99999999', '0', '1e3'])}`,
  ];
  const at = random.below(lines.length);
  lines[at] = random.weighted(
    [3, () => mutatedText(random, lines[at])],
    [1, () => `${lines[at]}\r\nTransfer-Encoding: chunked`],
    [1, () => `${lines[at]}\n${lines[at]}`],
    [1, () => 'x'.repeat(20_000)],
  );
  return Buffer.from(`${lines.join(random.chance(0.9) ? '\r\n' : '\n')}\r\n\r\n`).toString('base64');
}
