import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Example, followReadme, startExample } from './example-process.js';

const KEY = { 'X-MCP-API-Key': 'carrier-in-development' };
const PATIENT = { timeout: 150_000, interval: 50 };

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly servername?: string;
}

describe('the example behind-a-proxy', () => {
  let example: Example;
  let port: number;
  let certificate: string;
  beforeAll(async () => {
    example = await startExample('behind-a-proxy');
    port = Number(new URL(example.origin).port);
    certificate = /Certificate: (\S+)/.exec(example.output())?.[1] ?? '';
  });
  afterAll(() => example.stop());

  /** Each over a connection of its own, to this machine under the public name. */
  const open = (
    path: string,
    { method = 'GET', headers = {}, body, servername = 'parley.test' }: Asked = {},
  ) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({
        host: '127.0.0.1',
        port,
        path,
        method,
        servername,
        ca: readFileSync(certificate),
        agent: false,
        headers: { Host: `parley.test:${port}`, ...headers },
      });
      sent.once('response', resolve).once('error', reject).end(body);
    });
  const textOf = async (answer: IncomingMessage) => {
    let text = '';
    for await (const chunk of answer) text += String(chunk);
    return text;
  };
  const rpc = async (method: string, params: object, headers: Record<string, string> = KEY) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const length = String(Buffer.byteLength(body));
    const sent = { 'Content-Type': 'application/json', 'Content-Length': length, ...headers };
    const answer = await open('/mcp', { method: 'POST', headers: sent, body });
    return { status: answer.statusCode, headers: answer.headers, text: await textOf(answer) };
  };
  const call = (name: string, args: object = {}, headers = KEY) =>
    rpc('tools/call', { name, arguments: args }, headers);
  const session = async () => {
    const clientInfo = { name: 't', version: '1' };
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
    const { headers } = await rpc('initialize', params);
    return { ...KEY, 'Mcp-Session-Id': String(headers['mcp-session-id']) };
  };

  it('does what its README says', async () => {
    const shown = await followReadme('behind-a-proxy', {
      'parley.test:8443': `parley.test:${port}`,
      '/tmp/behind-a-proxy/certificate.pem': certificate,
    });
    expect(shown.length).toBeGreaterThan(5);
    expect(shown.map(({ actual }) => actual)).toEqual(shown.map(({ documented }) => documented));
  });

  it('lets either replica serve, and passes on what a stream says at once', async () => {
    const seen = new Set<string>();
    await expect
      .poll(
        async () => seen.add(/replica\\":(\d+)/.exec((await call('weigh_parcels')).text)?.[1] ?? '').size,
        PATIENT,
      )
      .toBe(2);
    const headers = { ...(await session()), Accept: 'text/event-stream' };
    // It never ends by itself: were it held back, nothing would ever come.
    const stream = await open('/mcp', { headers });
    const first = await new Promise<string>((resolve) =>
      stream.once('data', (chunk) => resolve(String(chunk))),
    );
    stream.destroy();
    expect(first).toMatch(/^(:|event|id|retry|data)/);
  });

  it('is reached under its own name alone, and by nobody without a key', async () => {
    await expect(open('/mcp', { servername: 'evil.test' })).rejects.toThrow('unrecognized name');
    await expect(open('/seen', { headers: { Host: 'evil.test' } })).rejects.toThrow('socket hang up');
    for (const forged of [{}, { 'X-Forwarded-For': '127.0.0.1' }, { Forwarded: 'for=127.0.0.1' }])
      expect((await rpc('tools/list', {}, forged as never)).status).toBe(401);
    const foreignPage = { ...KEY, Origin: 'https://evil.example' };
    expect((await rpc('tools/list', {}, foreignPage)).headers['access-control-allow-origin']).toBeUndefined();
  });

  it(
    'replaces both replicas without one failed call, and keeps its sessions',
    { timeout: 200_000 },
    async () => {
      const before = await session();
      const answers: (number | undefined)[] = [];
      let deployed = false;
      const clients = Array.from({ length: 2 }, async () => {
        while (!deployed) {
          const { status, text } = await call('count_objects', { class_name: 'Parcel' });
          answers.push(text.includes('"isError":false') ? 0 : status);
        }
      });
      example.signal('SIGHUP');
      await expect.poll(() => example.output(), PATIENT).toContain('Deployed: ');
      deployed = true;
      await Promise.all(clients);
      expect(answers.length).toBeGreaterThan(4);
      expect(answers.filter((failed) => failed !== 0)).toEqual([]);
      expect((await open('/mcp', { method: 'DELETE', headers: before })).statusCode).toBe(204);
    },
  );
});
