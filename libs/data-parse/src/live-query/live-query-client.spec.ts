import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { LiveQueryClient, type LiveQueryEvent } from './live-query-client.js';
import type { LiveQueryBounds, LiveQueryServer } from './live-query-options.js';

const SOON = { timeout: 20_000, interval: 10 };
const QUERY = { className: 'Post', where: {}, keys: ['objectId'], sessionToken: 'r:secret' };

interface Frame {
  readonly op: string;
  readonly requestId?: number;
  readonly [member: string]: unknown;
}

/** A server that implements the protocol as far as a test requires. */
class SmallServer {
  readonly frames: Frame[] = [];
  readonly sockets: WebSocket[] = [];
  answers = true;

  private constructor(private readonly server: WebSocketServer) {
    server.on('connection', (socket) => {
      this.sockets.push(socket);
      socket.on('message', (data: Buffer) => {
        const frame = JSON.parse(data.toString()) as Frame;
        this.frames.push(frame);
        if (this.answers) this.answer(socket, frame);
      });
    });
  }

  static async start(port = 0): Promise<SmallServer> {
    const server = new WebSocketServer({ host: '127.0.0.1', port, autoPong: false });
    await once(server, 'listening');
    return new SmallServer(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  ofOp(op: string): Frame[] {
    return this.frames.filter((frame) => frame.op === op);
  }

  send(frame: object): void {
    this.sockets.at(-1)?.send(JSON.stringify(frame));
  }

  async stop(): Promise<void> {
    for (const socket of this.server.clients) socket.terminate();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private answer(socket: WebSocket, { op, requestId }: Frame): void {
    if (op === 'connect') socket.send(JSON.stringify({ op: 'connected', clientId: 'c' }));
    if (op === 'subscribe') socket.send(JSON.stringify({ op: 'subscribed', requestId }));
  }
}

let server: SmallServer;
let client: LiveQueryClient;
const lines: string[] = [];
const open = (bounds: Partial<LiveQueryBounds> = {}, keys: Partial<LiveQueryServer> = {}) => {
  client = new LiveQueryClient(
    {
      url: `ws://127.0.0.1:${server.port}`,
      applicationId: 'app',
      restApiKey: null,
      masterKey: null,
      ...keys,
    },
    { warn: (line) => lines.push(line) },
    { initialReconnectInterval: 0.1, maxReconnectInterval: 0.2, ...bounds },
  );
  return client;
};
beforeEach(async () => {
  lines.length = 0;
  server = await SmallServer.start();
});
afterEach(async () => {
  client.close();
  await server.stop();
});

function watch(query: Parameters<LiveQueryClient['watch']>[0] = QUERY) {
  const news: LiveQueryEvent[] = [];
  const faults: unknown[] = [];
  const subscription = client
    .watch(query)
    .subscribe({ next: (one) => news.push(one), error: (fault) => faults.push(fault) });
  return { news, faults, subscription };
}

const subscribed = (news: LiveQueryEvent[], times = 1) =>
  vi.waitFor(() => expect(news.filter(({ op }) => op === 'subscribed')).toHaveLength(times), SOON);

describe('a LiveQuery client', () => {
  it('connects when there is something to watch, and passes on which rows changed', async () => {
    open();
    expect(client.state).toBe('disconnected');
    const { news, subscription } = watch();
    await subscribed(news);
    const [{ requestId } = { requestId: 0 }] = server.ofOp('subscribe');
    expect(server.ofOp('subscribe')).toEqual([
      {
        op: 'subscribe',
        requestId,
        query: { className: 'Post', where: {}, keys: ['objectId'] },
        sessionToken: 'r:secret',
      },
    ]);
    server.send({ op: 'create', requestId, object: { objectId: 'a' } });
    server.send({ op: 'leave', requestId: Number(requestId) + 1000, object: { objectId: 'b' } });
    server.send({ op: 'delete', requestId, object: { objectId: 'c' } });
    await vi.waitFor(() => expect(news).toHaveLength(3), SOON);
    expect(news.slice(1)).toEqual([
      { op: 'create', objectId: 'a' },
      { op: 'delete', objectId: 'c' },
    ]);
    subscription.unsubscribe();
    await vi.waitFor(() => expect(client.state).toBe('disconnected'), SOON);
  });

  it('comes back after every end that nobody asked for, and subscribes again', async () => {
    open();
    const { news } = watch();
    await subscribed(news);
    server.sockets.at(-1)?.close(1001);
    await subscribed(news, 2);
    server.sockets.at(-1)?.terminate();
    await subscribed(news, 3);
    expect(lines.filter((line) => line.includes('connection lost')).length).toBeGreaterThan(0);
  });

  it('takes a peer that does not answer pings for gone, and one that is merely silent not', async () => {
    open({ pingInterval: 0.1, pongTimeout: 0.1 });
    const { news } = watch();
    await subscribed(news, 2);
    expect(lines.join()).toContain('no pong');
  });

  it('does not wait for a frame that never ends', async () => {
    open({ frameReadTimeout: 0.1 });
    const { news } = watch();
    await subscribed(news);
    const raw = (server.sockets.at(-1) as unknown as { _socket: { write(bytes: Buffer): void } })._socket;
    // The head of a text frame of 125 bytes, and two of them.
    raw.write(Buffer.from([0x81, 125, 0x7b, 0x22]));
    await subscribed(news, 2);
    expect(lines.join()).toContain('not finished');
  });

  it('gives up a message that is too large', async () => {
    open({ maxMessageSize: 1000 });
    const { news } = watch();
    await subscribed(news);
    server.send({ op: 'create', text: 'x'.repeat(2000) });
    await subscribed(news, 2);
    expect(news.every(({ op }) => op === 'subscribed')).toBe(true);
  });

  it('fails what the server refuses, and only that', async () => {
    open();
    const kept = watch();
    await subscribed(kept.news);
    const refused = watch({ className: 'Secret', where: {} });
    await subscribed(refused.news);
    const { requestId } = server.ofOp('subscribe').at(-1) ?? {};
    server.send({ op: 'error', code: 119, error: 'Permission denied', requestId });
    await vi.waitFor(() => expect(refused.faults).toHaveLength(1), SOON);
    expect(refused.faults[0]).toMatchObject({
      name: 'SourceRefused',
      cause: { message: `request_id=${requestId} class=Secret Permission denied (code: 119)` },
    });
    expect(kept.faults).toEqual([]);
  });

  it('does not come back to a server that asks it not to', async () => {
    open();
    const { news, faults } = watch();
    await subscribed(news);
    server.send({ op: 'error', code: 1, error: 'go', reconnect: false });
    await vi.waitFor(() => expect(faults).toHaveLength(1), SOON);
    expect(client.state).toBe('disconnected');
  });

  it('says at once when there is no server, so that another source may be asked', async () => {
    open();
    await server.stop();
    const { faults } = watch();
    await vi.waitFor(() => expect(faults).toMatchObject([{ name: 'SourceRefused' }]), SOON);
    server = await SmallServer.start();
  });

  it('reports a loss when events come faster than they are taken', async () => {
    open({ eventQueueSize: 1 });
    const { news } = watch();
    await subscribed(news);
    const { requestId } = server.ofOp('subscribe')[0] ?? {};
    for (let event = 0; event < 200; event += 1)
      server.send({ op: 'update', requestId, object: { objectId: `r${event}` } });
    await vi.waitFor(() => expect(news.some(({ op }) => op === 'lost')).toBe(true), SOON);
  });

  it('does not wait for a server that takes a connection and says nothing', async () => {
    open({ answerTimeout: 0.1 });
    server.answers = false;
    const { faults } = watch();
    await vi.waitFor(() => expect(faults).toMatchObject([{ name: 'SourceRefused' }]), SOON);
    expect(faults[0]).toMatchObject({ cause: { code: 'unavailable' } });
    expect(lines.join()).toContain('no answer');
  });

  it('comes back to a server that said nothing for a while, and reports that changes may be missing', async () => {
    open({ answerTimeout: 1 });
    const { news, faults } = watch();
    await subscribed(news);
    server.answers = false;
    server.sockets.at(-1)?.terminate();
    await vi.waitFor(() => expect(server.ofOp('connect').length).toBeGreaterThan(2), SOON);
    server.answers = true;
    await subscribed(news, 2);
    expect(faults).toEqual([]);
  });

  it('fails a subscription that is not answered, so that another source is asked, and only that', async () => {
    open({ answerTimeout: 1 });
    const kept = watch();
    await subscribed(kept.news);
    server.answers = false;
    const deaf = watch();
    await vi.waitFor(() => expect(deaf.faults).toMatchObject([{ name: 'SourceRefused' }]), SOON);
    expect(deaf.faults[0]).toMatchObject({ cause: { code: 'unavailable' } });
    expect(kept.faults).toEqual([]);
    const { requestId } = server.ofOp('subscribe').at(-1) ?? {};
    await vi.waitFor(() => expect(server.ofOp('unsubscribe')).toMatchObject([{ requestId }]), SOON);
  });

  it('renews a subscription that the server ended by itself, after a pause', async () => {
    open();
    const { news, faults } = watch();
    await subscribed(news);
    const { requestId } = server.ofOp('subscribe')[0] ?? {};
    server.send({ op: 'unsubscribed', requestId });
    await subscribed(news, 2);
    server.send({ op: 'create', requestId, object: { objectId: 'a' } });
    await vi.waitFor(() => expect(news.at(-1)).toEqual({ op: 'create', objectId: 'a' }), SOON);
    expect(faults).toEqual([]);
    expect(server.ofOp('connect')).toHaveLength(1);
  });

  it.each([{}, { object: null }, { object: { objectId: 7 } }])(
    'takes an event that names no row (%j) for a change that it does not know',
    async (rest) => {
      open();
      const { news } = watch();
      await subscribed(news);
      const { requestId } = server.ofOp('subscribe')[0] ?? {};
      server.send({ op: 'update', requestId, ...rest });
      await vi.waitFor(() => expect(news.at(-1)).toEqual({ op: 'lost' }), SOON);
    },
  );

  it('shows no key and no token, in what is printed of it and in what it logs', async () => {
    open({}, { masterKey: 'master-secret' });
    const { news } = watch();
    await subscribed(news);
    server.sockets.at(-1)?.terminate();
    await subscribed(news, 2);
    const shown = `${inspect(client, { depth: 9 })} ${JSON.stringify(client)} ${lines.join()}`;
    expect(shown).not.toContain('secret');
  });

  it('watches nothing more once it is closed', async () => {
    open();
    const { news, faults } = watch();
    await subscribed(news);
    client.close();
    await vi.waitFor(() => expect(faults).toHaveLength(1), SOON);
    expect(watch().faults).toMatchObject([{ name: 'SourceRefused' }]);
    expect(client.state).toBe('closed');
  });
});
