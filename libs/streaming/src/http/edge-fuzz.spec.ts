import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { type Answer, edgeUnderTest } from '../testing/edge-under-test.js';
import { parseFrames, listMessages } from '../testing/event-frames.js';
import { MODERN_META } from '../testing/requests.js';

const usual = await edgeUnderTest({ requireContentLength: false });
afterAll(() => usual.stop());

const METHODS = [
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'resources/subscribe',
  'notifications/initialized',
  'notifications/cancelled',
  'nope',
];
const VERSIONS = [
  '2024-11-05',
  '2025-03-26',
  '2025-06-18',
  '2025-11-25',
  '2026-07-28',
  '2099-01-01',
  'bogus',
];

const method = fc.oneof({ weight: 6, arbitrary: fc.constantFrom<unknown>(...METHODS) }, fc.jsonValue());
const meta = fc.oneof(
  fc.constant<unknown>(MODERN_META),
  fc.record(
    {
      'io.modelcontextprotocol/protocolVersion': fc.oneof(
        fc.constantFrom<unknown>(...VERSIONS),
        fc.jsonValue(),
      ),
      'io.modelcontextprotocol/clientCapabilities': fc.oneof(fc.constant<unknown>({}), fc.jsonValue()),
      'io.modelcontextprotocol/logLevel': fc.jsonValue(),
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue(),
);
const params = fc.oneof(
  fc.record(
    {
      _meta: meta,
      name: fc.oneof(fc.constantFrom<unknown>('echo', 'whoami', 'count_by', '__proto__'), fc.jsonValue()),
      arguments: fc.jsonValue(),
      cursor: fc.jsonValue(),
      category: fc.jsonValue(),
      ref: fc.jsonValue(),
      argument: fc.jsonValue(),
      uri: fc.jsonValue(),
      requestId: fc.jsonValue(),
      protocolVersion: fc.oneof(fc.constantFrom<unknown>(...VERSIONS), fc.jsonValue()),
      capabilities: fc.jsonValue(),
    },
    { requiredKeys: [] },
  ),
  fc.jsonValue(),
);
const frame = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record(
      { jsonrpc: fc.constantFrom<unknown>('2.0', '1.0', 2), id: fc.jsonValue(), method, params },
      { requiredKeys: [] },
    ),
  },
  fc.record({ id: fc.jsonValue(), result: fc.jsonValue(), error: fc.jsonValue() }, { requiredKeys: ['id'] }),
  fc.jsonValue(),
);
const body = fc.oneof(
  { weight: 8, arbitrary: frame.map((value) => Buffer.from(JSON.stringify(value))) },
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
);
const value = fc.stringMatching(/^[\x20-\x7e]{0,20}$/);
const headers = fc.record(
  {
    'MCP-Protocol-Version': fc.oneof(fc.constantFrom(...VERSIONS), value),
    'Mcp-Method': fc.oneof(fc.constantFrom(...METHODS), value),
    'Mcp-Name': fc.oneof(fc.constantFrom('echo', '=?base64?ZWNobw==?=', '=?base64?%?='), value),
    'Mcp-Session-Id': value,
    'Mcp-Param-Region': value,
    Accept: fc.constantFrom('text/event-stream', '*/*', ''),
    Origin: fc.oneof(fc.constantFrom('http://localhost', 'null'), value),
    'X-MCP-API-Key': fc.constantFrom('ada', 'wrong'),
  },
  { requiredKeys: [] },
);

/** The error in an answer; `null` when it is one valid envelope, or correctly empty. */
function findFault({ status, text, headers: { 'content-type': type }, json }: Answer): string | null {
  if (type === 'text/event-stream') {
    const messages = listMessages(parseFrames(text));
    return messages.length === 1 ? envelopeFault(messages[0] ?? {}, status) : 'not one frame';
  }
  if (type !== 'application/json') return 'another content type';
  if (status === 202 || status === 204) return text === '' ? null : 'a body where none belongs';
  return envelopeFault(json(), status);
}

function envelopeFault(envelope: Record<string, unknown>, status: number): string | null {
  if (envelope.jsonrpc !== '2.0' || !('id' in envelope)) return 'no JSON-RPC envelope';
  if ('result' in envelope === 'error' in envelope) return 'not exactly one of result and error';
  if ('result' in envelope) return status === 200 ? null : 'a result with an error status';
  const { code, message } = envelope.error as { code: unknown; message: unknown };
  if (typeof code !== 'number' || typeof message !== 'string') return 'a malformed error';
  return code === -32603 ? 'an internal error' : null;
}

it(
  'answers every frame with one valid JSON-RPC envelope or nothing, and never with an internal error',
  { timeout: 60_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(body, headers, async (sent, given) => {
        expect(findFault(await usual.ask({ body: sent, headers: given }))).toBeNull();
      }),
      { numRuns: 250 },
    );
    expect(
      usual.warnings.filter((line) => !line.includes('Unauthorized') && !line.includes('Origin')),
    ).toEqual([]);
  },
);

it('answers every verb and path with one valid envelope or nothing', { timeout: 60_000 }, async () => {
  const verb = fc.constantFrom('GET', 'PUT', 'PATCH', 'OPTIONS', 'DELETE', 'POST');
  const path = fc.stringMatching(/^\/[!-~]{0,20}$/);
  await fc.assert(
    fc.asyncProperty(
      verb,
      fc.oneof(fc.constantFrom('/mcp', '/mcp/'), path),
      headers,
      async (asked, target, given) => {
        // A listening stream does not end, so the test cannot wait for its end.
        const sent = asked === 'GET' ? { ...given, Accept: '*/*' } : given;
        expect(findFault(await usual.ask({ method: asked, path: target, headers: sent }))).toBeNull();
      },
    ),
    { numRuns: 100 },
  );
});
