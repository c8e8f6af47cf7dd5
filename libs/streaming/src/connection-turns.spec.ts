import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from './contracts/calls.js';
import { UnreadAnswers } from './unread-answers.js';

const MIB = 1024 * 1024;
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

interface Served {
  readonly begun: string[];
  readonly served: { answered: number };
  readonly client: () => Socket;
}

/** A route that prepares each answer whole, after a moment. */
async function route(bytes: number): Promise<Served> {
  const unread = new UnreadAnswers();
  const begun: string[] = [];
  const served = { answered: 0 };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const isAdmitted = await unread.admit(request, response);
    if (isAdmitted) {
      begun.push(String(request.url));
      await new Promise(setImmediate);
      response.end(`${request.url} ${'x'.repeat(bytes)}\n`);
      unread.wrote(response);
    }
    served.answered += 1;
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  const client = () => connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
  return { begun, served, client };
}

const requests = (count: number) =>
  Array.from({ length: count }, (_, at) => `GET /${at} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join('');
const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status);

describe('requests that are sent on one connection without waiting', () => {
  it('are answered one after another, in their order, each of them', async () => {
    const { begun, client } = await route(10);
    const socket = client();
    let received = '';
    socket.setEncoding('utf8').on('data', (text: string) => (received += text));
    socket.write(requests(60));
    await until(() => statuses(received).length === 60);
    expect(new Set(statuses(received))).toEqual(new Set(['200']));
    expect(begun).toEqual(Array.from({ length: 60 }, (_, at) => `/${at}`));
    socket.destroy();
  });

  it('are not worked on while the answer to an earlier one is not taken', async () => {
    const { begun, served, client } = await route(32 * MIB);
    const deaf = client().pause();
    deaf.write(requests(400));
    // All but the hundred that wait and the first are refused; those that wait stay where they are.
    await until(() => served.answered >= 300);
    expect(begun).toEqual(['/0']);
    const other = client();
    let received = 0;
    other.on('data', (chunk: Buffer) => (received += chunk.length));
    other.write(requests(2));
    await until(() => received > 64 * MIB);
    expect(begun).toEqual(['/0', '/0', '/1']);
    deaf.destroy();
    other.destroy();
  });

  it('are refused with 503 beyond a hundred that wait', async () => {
    const { client } = await route(10);
    const socket = client();
    let received = '';
    socket.setEncoding('utf8').on('data', (text: string) => (received += text));
    socket.write(requests(150));
    await until(() => statuses(received).length === 150);
    expect(statuses(received).filter((status) => status === '503')).toHaveLength(49);
    expect(received).toContain('server busy: too many requests wait on this connection');
    socket.destroy();
  });

  it('are given up, unanswered, when their connection is closed', async () => {
    const { begun, served, client } = await route(32 * MIB);
    const deaf = client().pause();
    deaf.write(requests(20));
    await until(() => begun.length === 1);
    deaf.destroy();
    await until(() => served.answered === 20);
    expect(begun).toEqual(['/0']);
  });
});
