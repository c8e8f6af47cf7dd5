import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { StoreError } from '#data';
import {
  toCredentials,
  MASTER_KEY,
  ParseConnection,
  type ParseCredentials,
  sessionCredentials,
} from './parse-connection.js';

const KEYS = { appId: 'app', masterKey: 'MASTER-KEY', restApiKey: 'REST-KEY' };

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  server = undefined;
});

async function serving(listener: RequestListener, maxAnswerBytes?: number): Promise<ParseConnection> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const serverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/parse/`;
  return new ParseConnection({ serverUrl, ...KEYS, ...(maxAnswerBytes && { maxAnswerBytes }) });
}

const answering =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, headers);
    response.end(body);
  };

const unhurried = () => ({ maxTimeMS: 20_000, signal: new AbortController().signal });
const ask = (
  connection: ParseConnection,
  query: Record<string, unknown> = {},
  credentials: ParseCredentials = MASTER_KEY,
  operation = unhurried(),
) => connection.send({ credentials, method: 'GET', path: '/classes/Note', query }, operation);

async function faultOf(work: Promise<unknown>): Promise<StoreError> {
  const fault: unknown = await work.catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(StoreError);
  return fault as StoreError;
}

/** All data of an error that could reach a log. */
const printed = (error: StoreError) => `${String(error.stack)} ${String((error.cause as Error)?.stack)}`;

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
}

describe('a connection to Parse Server', () => {
  it('shows the master key or a session, never both', async () => {
    const seen: IncomingMessage['headers'][] = [];
    const connection = await serving((request, response) => {
      seen.push(request.headers);
      response.end('{}');
    });
    await ask(connection);
    await ask(connection, {}, sessionCredentials('r:ada'));
    expect(seen[0]).toMatchObject({ 'x-parse-master-key': 'MASTER-KEY', 'x-parse-application-id': 'app' });
    expect(seen[0]).not.toHaveProperty('x-parse-session-token');
    expect(seen[1]).toMatchObject({ 'x-parse-session-token': 'r:ada', 'x-parse-rest-api-key': 'REST-KEY' });
    expect(seen[1]).not.toHaveProperty('x-parse-master-key');
  });

  it('sends a long query in the body of a POST, and says that it reads', async () => {
    const seen: { method: string | undefined; body: Record<string, unknown> }[] = [];
    const connection = await serving((request, response) => {
      void bodyOf(request).then((body) => {
        seen.push({ method: request.method, body });
        response.end('{}');
      });
    });
    const where = { title: 'x'.repeat(3000) };
    await ask(connection, { where, limit: 5 });
    expect(seen).toEqual([{ method: 'POST', body: { where, limit: 5, _method: 'GET' } }]);
  });

  it('follows no redirect', async () => {
    let requests = 0;
    const connection = await serving((_request, response) => {
      requests += 1;
      response.writeHead(302, { location: 'http://169.254.169.254/' });
      response.end();
    });
    expect((await faultOf(ask(connection))).code).toBe('failed');
    expect(requests).toBe(1);
  });

  it.each<[string, RequestListener, string]>([
    ['what is not JSON', answering(200, '<html>'), 'failed'],
    ['what is no object', answering(200, '[1]'), 'failed'],
    ['a refusal on connection', answering(403, '{"error":"unauthorized"}'), 'failed'],
    ['a gateway without its server', answering(502, '{}'), 'unavailable'],
    ['the page of a gateway', answering(503, '<html>'), 'unavailable'],
    [
      'what is nested deeper than any row',
      answering(200, `{"a":${'['.repeat(400)}${']'.repeat(400)}}`),
      'failed',
    ],
    ['a missing permission', answering(403, '{"code":119,"error":"Permission denied"}'), 'denied'],
    ['a value of another type', answering(400, '{"code":111,"error":"no"}'), 'invalid_query'],
    ['a duplicate', answering(400, '{"code":137,"error":"A duplicate value for …"}'), 'duplicate'],
    ['a trigger’s refusal', answering(400, '{"code":141,"error":"no"}'), 'rejected'],
    ['a code of the application', answering(400, '{"code":4711,"error":"no"}'), 'rejected'],
    ['an error of the server', answering(500, '{"code":1,"error":"no"}'), 'failed'],
    ['a connection cut short', (request) => request.socket.destroy(), 'unavailable'],
  ])('calls %s by its name', async (_title, listener, code) => {
    const fault = await faultOf(ask(await serving(listener)));
    expect(fault).toMatchObject({ code, store: 'Parse Server' });
    expect(printed(fault)).not.toMatch(/MASTER-KEY|REST-KEY/);
  });

  it.each([100, 101, 102, 105, 107, 111, 119, 121, 124, 137, 141, 142, 155, 202, 206, 208, 209, 4711])(
    'calls what a trigger threw as %d a refusal of the application, whoever writes',
    async (code) => {
      const connection = await serving(answering(400, JSON.stringify({ code, error: 'out of stock' })));
      for (const credentials of [MASTER_KEY, sessionCredentials('r:ada')])
        for (const method of ['POST', 'PUT', 'DELETE'] as const) {
          const sent = connection.send(
            { credentials, method, path: '/classes/Note' },
            { maxTimeMS: 5_000, signal: new AbortController().signal },
          );
          expect(await faultOf(sent)).toMatchObject({ code: 'rejected' });
        }
    },
  );

  it('takes a session for ended where one was sent and Parse Server says so', async () => {
    const connection = await serving(answering(400, '{"code":209,"error":"Invalid session token"}'));
    expect((await faultOf(ask(connection, {}, sessionCredentials('r:ada')))).code).toBe('session_ended');
    expect((await faultOf(ask(connection))).code).toBe('rejected');
  });

  it('reads no more of an answer than its limit', async () => {
    const connection = await serving(answering(200, JSON.stringify({ results: 'x'.repeat(10_000) })), 1000);
    const fault = await faultOf(ask(connection));
    expect(fault.code).toBe('too_large');
    expect(String(fault.cause)).toContain('1000 bytes');
  });

  it('ends with its deadline, also in the middle of an answer', async () => {
    const connection = await serving((_request, response) => {
      response.write('{"results":');
    });
    const fault = await faultOf(ask(connection, {}, MASTER_KEY, { ...unhurried(), maxTimeMS: 200 }));
    expect(fault.code).toBe('timeout');
  });

  it('ends when its caller goes', async () => {
    const caller = new AbortController();
    const connection = await serving(() => caller.abort());
    const fault = await faultOf(
      ask(connection, {}, MASTER_KEY, { maxTimeMS: 20_000, signal: caller.signal }),
    );
    expect(fault.code).toBe('cancelled');
  });

  it('says that nobody listens', async () => {
    const connection = await serving(answering(200, '{}'));
    server?.close();
    server?.closeAllConnections();
    const fault = await faultOf(ask(connection));
    expect(fault.code).toBe('unavailable');
    server = undefined;
  });

  it.each(['', 'r:a\r\nX-Parse-Master-Key: x', 'r:a b', 'r:ä', 'r:\u0000', 'x'.repeat(513)])(
    'takes %j for no session',
    (token) => {
      expect(() => sessionCredentials(token)).toThrow(StoreError);
    },
  );

  it('honors no assumed user or role', () => {
    expect(() => toCredentials({ kind: 'aclUser', userId: 'ada' })).toThrow('REST surface cannot honor');
    expect(() => toCredentials({ kind: 'aclRole', role: 'staff' })).toThrow('REST surface cannot honor');
  });

  it('keeps tokens out of whatever prints credentials', () => {
    expect(JSON.stringify(sessionCredentials('r:ada'))).not.toContain('r:ada');
  });
});
