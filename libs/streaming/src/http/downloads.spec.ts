import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Agent, refusals, Refused, Unauthorized } from '#core';
import { SharedStateUnavailable } from '#state';
import { edgeUnderTest, type EdgeUnderTest } from '../testing/edge-under-test.js';
import { type Download, type DownloadCall, Downloads, type McpEdgeOptions } from './edge-dependencies.js';

type Pieces = (call: DownloadCall) => AsyncGenerator<string, void, undefined>;

/** One file that belongs to ada. */
class OneFile extends Downloads {
  made = 0;
  ended = 0;
  readonly opened: DownloadCall[] = [];

  constructor(private readonly pieces: Pieces) {
    super();
  }

  open(id: string, call: DownloadCall): Promise<Download | undefined> {
    if (id !== 'file' || call.agent.principal !== 'ada') return Promise.resolve(undefined);
    this.opened.push(call);
    const pieces = this.countPieces(this.pieces(call));
    return Promise.resolve({ fileName: 'Post.csv', mimeType: 'text/csv; charset=utf-8', pieces });
  }

  revoke(id: string, agent: Agent): Promise<boolean> {
    return Promise.resolve(id === 'file' && agent.principal === 'ada');
  }

  private async *countPieces(pieces: AsyncGenerator<string, void, undefined>) {
    try {
      for await (const piece of pieces) {
        this.made += 1;
        yield piece;
      }
    } finally {
      this.ended += 1;
    }
  }
}

async function* three() {
  yield 'a\n';
  yield 'b\n';
  yield 'c\n';
}
async function* endless() {
  for (;;) yield 'x'.repeat(65_536);
}
const createFailing = (error: unknown, first?: string): Pieces =>
  async function* () {
    if (first !== undefined) yield first;
    throw error;
  };

let running: EdgeUnderTest[] = [];
afterEach(async () => {
  await Promise.all(running.map((edge) => edge.stop()));
  running = [];
});
async function setUp(pieces: Pieces = three, options: McpEdgeOptions = {}) {
  const files = new OneFile(pieces);
  const edge = await edgeUnderTest(options, undefined, files);
  running.push(edge);
  const createRequest = (path = '/exports/file', headers: Record<string, string> = {}, method = 'GET') => ({
    method,
    path,
    headers,
  });
  return { files, edge, asked: createRequest };
}

describe('a file', () => {
  it('is sent whole, under a safe name, and may not be cached', async () => {
    const { files, edge, asked } = await setUp();
    const answer = await edge.ask(asked('/exports/file', { 'Mcp-Session-Id': 'label' }));
    expect(answer).toMatchObject({
      status: 200,
      text: 'a\nb\nc\n',
      headers: {
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': 'attachment; filename="Post.csv"',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      },
    });
    expect(files.opened).toMatchObject([{ correlationId: 'label' }]);
    expect(files.ended).toBe(1);
  });

  it.each<[string, McpEdgeOptions, Record<string, string>, number]>([
    ['another host', {}, { Host: 'evil.example' }, 403],
    ['a foreign origin', {}, { Origin: 'https://evil.example' }, 403],
    ['no custom header', { requireCustomHeader: 'X-Parley' }, {}, 403],
    ['a wrong credential', {}, { 'X-MCP-API-Key': 'wrong' }, 401],
    [
      'no room before authentication',
      { preAuthRateLimiter: { check: () => Promise.resolve({ limit: 1, window: 1, retryAfter: 2 }) } },
      {},
      429,
    ],
    ['somebody else', {}, { 'X-MCP-API-Key': 'bob' }, 404],
  ])('is not opened for %s', async (_, options, headers, status) => {
    const { files, edge, asked } = await setUp(three, options);
    for (const method of ['GET', 'DELETE'])
      expect((await edge.ask(asked('/exports/file', headers, method))).status).toBe(status);
    expect(files.opened).toEqual([]);
  });

  it('cannot be distinguished from one that never existed', async () => {
    const { edge, asked } = await setUp();
    const foreign = await edge.ask(asked('/exports/file', { 'X-MCP-API-Key': 'bob' }));
    for (const path of [
      '/exports/other',
      '/exports/',
      '/exports/a/b',
      '/exports/..',
      `/exports/${'a'.repeat(200)}`,
    ]) {
      const { status, text } = await edge.ask(asked(path));
      expect([status, text]).toEqual([404, foreign.text]);
    }
  });

  it('is revoked by DELETE, and any other method is refused', async () => {
    const { edge, asked } = await setUp();
    expect((await edge.ask(asked('/exports/file', {}, 'DELETE'))).status).toBe(204);
    for (const verb of ['POST', 'PUT', 'HEAD', 'OPTIONS'])
      expect((await edge.ask(asked('/exports/file', {}, verb))).status).toBe(405);
  });

  it.each([
    ['a refusal', new Refused(refusals.hiddenClass('Post')), 403, 'access_denied'],
    ['a rate limit', new Refused(refusals.rateLimited(1, 60, 3.2)), 429, 'rate_limited'],
    [
      'a database that is away',
      new Refused(refusals.parseError('the database does not answer', 'ECONNREFUSED')),
      503,
      'parse_error',
    ],
    [
      'what is nobody’s business',
      new Refused(refusals.securityBlocked('canary', 'canary: x')),
      403,
      'Not permitted',
    ],
    ['an ended session', new Unauthorized('gone'), 401, 'Unauthorized'],
    ['a shared state that is away', new SharedStateUnavailable('redis.internal'), 503, 'server busy'],
    ['an error', new Error('secret of db.internal'), 500, 'Internal error'],
  ])('answers %s before the first piece, and no cause', async (_, error, status, word) => {
    const { edge, asked } = await setUp(createFailing(error));
    const answer = await edge.ask(asked());
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(word);
    expect(answer.text).not.toMatch(/internal\b.*|ECONNREFUSED|canary/);
  });

  it('that fails in the middle breaks the connection, so no reader treats a part as the whole', async () => {
    const { edge, asked } = await setUp(createFailing(new Error('lost'), 'a\n'));
    await expect(fetch(`http://127.0.0.1:${edge.port}${asked().path}`).then((r) => r.text())).rejects.toThrow(
      /terminated|fetch failed/,
    );
    expect(edge.warnings.join()).toContain('broken off');
  });

  it('is created no faster than it is read, and ends when its reader leaves', async () => {
    const { files, edge, asked } = await setUp(endless);
    const reader = await edge.open(asked());
    reader.pause();
    let before = -1;
    await vi.waitFor(
      () => {
        const now = files.made;
        const stood = now === before;
        before = now;
        expect(stood).toBe(true);
      },
      { timeout: 20_000, interval: 300 },
    );
    expect(files.ended).toBe(0);
    reader.leave();
    await vi.waitFor(() => expect(files.ended).toBe(1), { timeout: 20_000 });
    expect(files.opened[0]?.signal.aborted).toBe(true);
  });

  it('is aborted when its reader accepts nothing for too long', async () => {
    const { files, edge, asked } = await setUp(endless, { downloadTimeout: 200 });
    const reader = await edge.open(asked());
    reader.pause();
    await vi.waitFor(() => expect(files.ended).toBe(1), { timeout: 20_000 });
  });

  it('is counted among the answers that wait for the readers of a caller', async () => {
    async function* large() {
      for (;;) yield 'x'.repeat(12 * 1024 * 1024);
    }
    const { files, edge, asked } = await setUp(large, { maxUnread: 32 * 1024 * 1024 });
    const readers = [];
    for (let at = 0; at < 4; at += 1) {
      const reader = await edge.open(asked());
      reader.pause();
      readers.push(reader);
    }
    await vi.waitFor(() => expect(files.ended).toBeGreaterThan(0), { timeout: 20_000 });
    expect(files.ended).toBeLessThan(4);
    for (const reader of readers) reader.leave();
    await vi.waitFor(() => expect(files.ended).toBe(4), { timeout: 20_000 });
  });

  it('begins when the earlier answers of its connection were sent, and never after the connection was closed', async () => {
    const { files, edge } = await setUp(endless);
    const socket = connect({ port: edge.port, host: '127.0.0.1' });
    socket.on('error', () => undefined).pause();
    socket.write('GET /exports/file HTTP/1.1\r\nHost: localhost\r\nX-MCP-API-Key: ada\r\n\r\n'.repeat(3));
    await vi.waitFor(() => expect(files.opened).toHaveLength(1), { timeout: 20_000 });
    await vi.waitFor(() => expect(edge.edge.answering).toBe(3), { timeout: 20_000 });
    socket.destroy();
    await vi.waitFor(() => expect(edge.edge.answering).toBe(0), { timeout: 20_000 });
    expect([files.opened.length, files.ended]).toEqual([1, 1]);
  });

  it('is refused while the maximum number of files is being sent', async () => {
    const { files, edge, asked } = await setUp(endless, { maxConcurrentDispatchers: 1 });
    const reader = await edge.open(asked());
    reader.pause();
    expect((await edge.ask(asked())).status).toBe(503);
    reader.leave();
    await vi.waitFor(() => expect(files.ended).toBe(1), { timeout: 20_000 });
  });

  it('breaks off once the credentials that opened it are taken back, however slow its reader is', async () => {
    const { files, edge, asked } = await setUp(endless, { credentialsInterval: 20 });
    const reader = await edge.open(asked());
    reader.pause();
    await vi.waitFor(() => expect(edge.authenticator.seen.length).toBeGreaterThan(3), { timeout: 20_000 });
    expect(files.ended).toBe(0);
    edge.authenticator.takenBack.add('ada');
    await vi.waitFor(() => expect(files.ended).toBe(1), { timeout: 20_000 });
    reader.resume();
    await reader.over;
  });

  it('is aborted when the service closes', async () => {
    const { files, edge, asked } = await setUp(endless);
    const reader = await edge.open(asked());
    await edge.edge.close(100);
    await reader.over;
    expect(files.ended).toBe(1);
  });
});
