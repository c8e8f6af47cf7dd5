import { EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { call, cancel, openSession, until } from '../testing/calls.js';
import { edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { EventStream } from '../sse/event-stream.js';
import { UnreadAnswers, type UnreadLimits } from './client-memory.js';

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

/** @returns opens a connection to a server that answers with this listener, until the end of the test */
async function startServer(listener: RequestListener): Promise<() => Socket> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  return () => connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
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
  const client = await startServer((request, response) => void answer(request, response));
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

  it('are not processed while the answer to an earlier one is not read', async () => {
    const { begun, served, client } = await route(32 * MIB);
    const deaf = client().pause();
    deaf.write(requests(400));
    // All requests except the first and the hundred that wait are refused; the waiting ones keep their order.
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

  it('are not answered when their connection is closed', async () => {
    const { begun, served, client } = await route(32 * MIB);
    const deaf = client().pause();
    deaf.write(requests(20));
    await until(() => begun.length === 1);
    deaf.destroy();
    await until(() => served.answered === 20);
    expect(begun).toEqual(['/0']);
  });
});

describe('answers to requests whose body was refused before its end', () => {
  it('are sent like others, also when many are too large', async () => {
    const unread = new UnreadAnswers();
    const refuse = async (request: IncomingMessage, response: ServerResponse) => {
      await unread.admit(request, response);
      // Node destroys a request whose body is no longer read.
      for await (const _chunk of request) break;
      response.writeHead(413).end('too large');
      unread.wrote(response);
    };
    const connected = await startServer((request, response) => void refuse(request, response));
    for (const body of ['x'.repeat(20_000), 'x'.repeat(1_000_000)]) {
      const socket = connected();
      let received = '';
      socket.setEncoding('utf8').on('data', (text: string) => (received += text));
      socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      await until(() => statuses(received).length === 1);
      expect(statuses(received)).toEqual(['413']);
      socket.destroy();
    }
  });
});

describe('answers that nobody reads', () => {
  interface Client {
    readonly socket: Socket;
    readonly answer: ServerResponse;
    /** Whether the server has closed the connection. */
    readonly isClosed: () => boolean;
  }

  /** A server that answers each connection when the test says so. */
  async function createWaiting(limits: UnreadLimits) {
    let now = 0;
    const unread = new UnreadAnswers(limits, () => now);
    const answers = new Map<string, ServerResponse>();
    const connected = await startServer((request, response) => {
      unread.watch(request);
      answers.set(String(request.url), response);
    });
    let count = 0;
    /** Each client begins a moment later than the one before. */
    const client = async (principal: string): Promise<Client> => {
      const path = `/${(count += 1)}`;
      const socket = connected();
      socket.pause().write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await until(() => answers.has(path));
      const answer = answers.get(path) as ServerResponse;
      unread.own(answer, principal);
      now += 1;
      return { socket, answer, isClosed: () => answer.req.socket.destroyed };
    };
    const whole = async (principal: string, bytes: number): Promise<Client> => {
      const opened = await client(principal);
      opened.answer.end('x'.repeat(bytes));
      unread.wrote(opened.answer);
      return opened;
    };
    const pass = (milliseconds: number) => {
      now += milliseconds;
      unread.closeIdle();
    };
    const listClosed = (clients: readonly Client[]) => clients.map(({ isClosed }) => isClosed());
    return { unread, client, whole, pass, closed: listClosed };
  }

  it('are bounded for one caller: the connection that accepted nothing for longest is closed', async () => {
    const { whole, closed } = await createWaiting({ perCaller: 40 * MIB });
    const others = [await whole('grace', 16 * MIB)];
    const clients = [];
    for (let at = 0; at < 5; at += 1) clients.push(await whole('ada', 16 * MIB));
    expect(closed(clients)).toEqual([true, true, true, false, false]);
    expect(closed(others)).toEqual([false]);
  });

  it('are not bounded when there is one, however large it is', async () => {
    const { whole, closed } = await createWaiting({ perCaller: 1 });
    expect(closed([await whole('ada', 16 * MIB)])).toEqual([false]);
  });

  it('are not counted any more once they were read', async () => {
    const { whole, closed } = await createWaiting({ perCaller: 40 * MIB });
    const first = await whole('ada', 16 * MIB);
    first.socket.resume();
    await until(() => first.answer.writableFinished);
    const others = [await whole('ada', 16 * MIB), await whole('ada', 16 * MIB)];
    expect(closed([first, ...others])).toEqual([false, false, false]);
  });

  it('spare the reader who accepts a little, and close one who accepts nothing', async () => {
    const { whole, closed, pass } = await createWaiting({ perCaller: 88 * MIB, timeout: 10_000 });
    // The first answer is larger than what its reader takes here and what the operating system holds of it.
    const [first, second] = [await whole('ada', 64 * MIB), await whole('ada', 16 * MIB)];
    let read = 0;
    let end = 0;
    first.socket.on('data', (chunk: Buffer) => {
      read += chunk.length;
      if (read > end) first.socket.pause();
    });
    const readMore = async (bytes: number) => {
      end = read + bytes;
      first.socket.resume();
      await until(() => read > end);
    };
    // The operating system takes the beginning of both: it has long done so when the first reader got here.
    await readMore(16 * MIB);
    pass(1_000);
    await readMore(16 * MIB);
    pass(5_000);
    await whole('ada', 16 * MIB);
    expect(closed([first, second])).toEqual([false, true]);
  });

  it('are bounded for all callers: the one for whom most waits loses a connection', async () => {
    const { whole, closed } = await createWaiting({ perCaller: 64 * MIB, total: 70 * MIB });
    const one = [await whole('ada', 16 * MIB)];
    const many = [
      await whole('grace', 16 * MIB),
      await whole('grace', 16 * MIB),
      await whole('grace', 16 * MIB),
    ];
    expect(closed([...one, ...many])).toEqual([false, false, false, false]);
    const last = await whole('alan', 16 * MIB);
    expect(closed([...one, ...many, last])).toEqual([false, true, false, false, false]);
  });

  it('count each stream with what waits now, whatever waited before', async () => {
    const { unread, client, closed } = await createWaiting({ perCaller: 3 * MIB });
    const clients = [await client('ada'), await client('ada'), await client('ada')];
    const frame = `data: ${'x'.repeat(100_000)}\n\n`;
    for (const { socket, answer } of clients) {
      const stream = new EventStream(answer, 8 * MIB, unread);
      stream.open();
      while (answer.writableLength < 2 * MIB) stream.write(frame);
      socket.on('data', () => undefined).resume();
      await until(() => answer.writableLength === 0);
    }
    expect(closed(clients)).toEqual([false, false, false]);
  });
});

/** One connection with one answer, as Node shows it; a test says what is written and accepted. */
class StagedConnection extends EventEmitter {
  waiting = 0;
  /** The step in which bytes began to wait. */
  since = 0;
  readonly socket = Object.assign(new EventEmitter(), {
    destroyed: false,
    writableLength: 0,
    bytesWritten: 0,
    destroy: () => this.close(),
  });
  readonly request = { socket: this.socket } as unknown as IncomingMessage;
  readonly answer = this as unknown as ServerResponse;
  readonly req = this.request;

  constructor(readonly owner: string) {
    super();
  }

  get writableLength(): number {
    return this.waiting;
  }

  get destroyed(): boolean {
    return this.socket.destroyed;
  }

  private close(): void {
    this.socket.destroyed = true;
    this.socket.emit('close');
    this.emit('close');
  }
}

describe('the limits of unread answers', () => {
  const LIMITS = { perCaller: 100, total: 250 };
  const write = fc.record({
    kind: fc.constant('write' as const),
    at: fc.nat(11),
    bytes: fc.integer({ min: 1, max: 60 }),
  });
  const accept = fc.record({ kind: fc.constant('accept' as const), at: fc.nat(11), bytes: fc.nat(80) });

  it('are never exceeded, close nothing while they are kept, and close what is silent for longest', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(write, accept), { maxLength: 120 }), (steps) => {
        let now = 0;
        const unread = new UnreadAnswers(LIMITS, () => now);
        const connections = Array.from({ length: 12 }, (_, at) => new StagedConnection(`owner ${at % 4}`));
        for (const { request, answer, owner } of connections) {
          unread.watch(request);
          unread.own(answer, owner);
        }
        const listWaiting = (owner?: string) =>
          connections.filter(
            (one) => !one.destroyed && one.waiting > 0 && (owner === undefined || one.owner === owner),
          );
        const sum = (some: readonly StagedConnection[]) =>
          some.reduce((bytes, { waiting }) => bytes + waiting, 0);
        const isKept = (owner: string) =>
          sum(listWaiting()) <= LIMITS.total &&
          (sum(listWaiting(owner)) <= LIMITS.perCaller || listWaiting(owner).length <= 1);
        for (const { kind, at, bytes } of steps) {
          const one = connections[at] as StagedConnection;
          if (one.destroyed) continue;
          now += 1;
          if (kind === 'accept') {
            one.waiting = Math.max(0, one.waiting - bytes);
            unread.wrote(one.answer);
            continue;
          }
          if (one.waiting === 0) one.since = now;
          one.waiting += bytes;
          const wasKept = isKept(one.owner);
          const before = listWaiting();
          unread.wrote(one.answer);
          const closed = before.filter(({ destroyed }) => destroyed);
          expect(isKept(one.owner)).toBe(true);
          if (wasKept) expect(closed).toEqual([]);
          for (const { owner, since } of closed)
            for (const left of listWaiting(owner)) expect(left.since).toBeGreaterThan(since);
        }
        for (const { socket } of connections) if (!socket.destroyed) socket.destroy();
      }),
    );
  });
});

describe('messages that are sent on one connection without waiting', () => {
  const edges: EdgeUnderTest[] = [];
  afterEach(async () => {
    for (const edge of edges.splice(0)) await edge.stop();
  });
  async function startServing(options: Parameters<typeof edgeUnderTest>[0] = {}): Promise<EdgeUnderTest> {
    const edge = await edgeUnderTest(options);
    edges.push(edge);
    return edge;
  }
  const post = (message: unknown, headers: Record<string, string> = {}) => {
    const body = JSON.stringify(message);
    const fields = { Host: 'localhost', 'Content-Type': 'application/json', ...headers };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    return `POST /mcp HTTP/1.1\r\n${lines.join('')}Content-Length: ${body.length}\r\n\r\n${body}`;
  };
  const client = ({ port }: EdgeUnderTest) => {
    const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
    const received = { text: '' };
    socket.setEncoding('utf8').on('data', (text: string) => (received.text += text));
    return { socket, received };
  };

  it('are processed one after another, and cancelled at once', async () => {
    const edge = await startServing();
    const session = await openSession(edge);
    const { socket, received } = client(edge);
    socket.write(
      [call('wait', 'w'), call('echo', 'e'), cancel('w')].map((message) => post(message, session)).join(''),
    );
    await until(() => statuses(received.text).length === 3);
    expect(statuses(received.text)).toEqual(['200', '200', '202']);
    expect(edge.tools.contexts).toHaveLength(2);
    expect(edge.tools.contexts[0]?.signal.reason).toBe('notifications_cancelled');
    socket.destroy();
  });

  it('are refused with 503 beyond a hundred that wait, and the others answered in their order', async () => {
    const edge = await startServing();
    const { socket, received } = client(edge);
    socket.write(Array.from({ length: 150 }, (_, at) => post(call(at === 0 ? 'wait' : 'echo', at))).join(''));
    // The answers of the refused requests are ready; only the first request has begun.
    await until(() => edge.edge.answering === 101);
    expect(edge.tools.contexts).toHaveLength(1);
    edge.tools.release();
    await until(() => statuses(received.text).length === 150);
    expect(statuses(received.text).filter((status) => status === '503')).toHaveLength(49);
    expect(received.text).toContain(
      '"error":{"code":-32000,"message":"server busy: too many requests wait on this connection"}',
    );
    expect(edge.tools.contexts).toHaveLength(101);
    const ids = [...received.text.matchAll(/"jsonrpc":"2.0","id":(\d+)/g)].map(([, id]) => Number(id));
    expect(ids).toEqual(Array.from({ length: 150 }, (_, at) => at));
    socket.destroy();
  });

  it('are not processed while the answer to an earlier one is not read', async () => {
    const edge = await startServing();
    edge.tools.work = () => ({ text: 'x'.repeat(16 * MIB) });
    const deaf = connect({ port: edge.port, host: '127.0.0.1' })
      .on('error', () => undefined)
      .pause();
    deaf.write(post(call('work')).repeat(90));
    await until(() => edge.edge.answering === 89);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(edge.tools.contexts).toHaveLength(1);
    deaf.destroy();
    await until(() => edge.edge.answering === 0);
    expect(edge.tools.contexts).toHaveLength(1);
  });

  it('hold no body, stream or call once their connection is closed', async () => {
    const edge = await startServing({ maxConcurrentDispatchers: 3 });
    const session = await openSession(edge, '2025-11-25');
    const large = post({ ...call('echo', 'large'), filler: 'x'.repeat(900_000) }, session);
    const listen = `GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n${Object.entries(
      session,
    )
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`;
    // Each part is far below the limit of an address, and all together are far above it.
    for (let time = 1; time <= 4; time += 1) {
      const { socket } = client(edge);
      socket.write(`${post(call('wait', 'w'), session)}${large.repeat(6)}${listen.repeat(3)}`);
      await until(() => edge.edge.answering === 10);
      expect(edge.edge.activeListeningStreamCount).toBe(0);
      socket.destroy();
      await until(() => edge.edge.answering === 0);
    }
    expect(edge.tools.contexts).toHaveLength(4);
    const after = client(edge);
    after.socket.write(large);
    await until(() => statuses(after.received.text).length === 1);
    expect(statuses(after.received.text)).toEqual(['200']);
    after.socket.destroy();
  });
});
