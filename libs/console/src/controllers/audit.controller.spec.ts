import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type AuditEntry, type AuditPage, type AuditQuery, AuditTrail, RecentAuditTrail } from '#audit';
import { Agent, compileAgentDefinition, MASTER } from '#core';
import { NotServed } from '#streaming';
import { type Operator, OperatorNotes } from '../operator-gate.js';
import { AuditController, AuditSearchQuery } from './audit.controller.js';

/** A history without an end: every page of 200 records is 200 KiB. */
class EndlessTrail extends AuditTrail {
  readonly reach = 'kept';
  searches = 0;
  /** Searches wait for it. */
  gate: Promise<unknown> = Promise.resolve();

  async search({ limit = 50 }: AuditQuery, signal?: AbortSignal): Promise<AuditPage> {
    this.searches += 1;
    let leave = () => undefined as void;
    const left = new Promise((_, reject) => (leave = () => reject(new Error('left'))));
    signal?.addEventListener('abort', leave);
    await Promise.race([this.gate, left]).finally(() => signal?.removeEventListener('abort', leave));
    const cause = 'c'.repeat(1_000);
    const entries = Array.from({ length: limit }, (_, seq) => ({
      type: 'tool_call',
      at: '2026',
      seq,
      cause,
    }));
    return { entries: entries as unknown as AuditEntry[], cursor: 'more' };
  }
}

let trail: EndlessTrail;
let controller: AuditController;
let server: Server;
let targets: (string | undefined)[];
/** Principals that are signed out. */
let ended: Set<string>;
beforeEach(async () => {
  [trail, targets, ended] = [new EndlessTrail(), [], new Set()];
  const recordEvent = (event: object) => void targets.push((event as { target?: string }).target);
  const edge = { unread: { wrote: () => undefined } };
  controller = new AuditController(
    trail,
    new RecentAuditTrail(),
    new OperatorNotes({ recordEvent }),
    edge as never,
  );
  server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost');
    const { who = '', ...members } = Object.fromEntries(searchParams);
    const query = Object.assign(new AuditSearchQuery(), members);
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    controller.search(query, operator(who), closed.signal, response).catch((error: unknown) => {
      response.writeHead(error instanceof NotServed ? error.status : 500).end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
});

function operator(principal: string): Operator {
  const agent = new Agent({ definition: compileAgentDefinition('chief'), principal, identity: MASTER });
  const confirm = () =>
    ended.has(principal) ? Promise.reject(new NotServed(401, 'Unauthorized')) : Promise.resolve();
  return { agent, degraded: false, confirm };
}

/** The answer, of which nothing is read yet. */
const ask = (query: string) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const { port } = server.address() as AddressInfo;
    get({ port, host: '127.0.0.1', path: `/?${query}`, agent: false }, (answer) =>
      resolve(answer.on('error', () => undefined)),
    ).on('error', reject);
  });

/** The number of bytes, and whether they were all. */
async function read(answer: IncomingMessage) {
  let bytes = 0;
  answer.on('data', (piece: Buffer) => (bytes += piece.length));
  if (!answer.closed) await new Promise((resolve) => answer.once('close', resolve));
  return { bytes, whole: answer.complete };
}

describe('files of audit records', () => {
  it('are one of each operator at once: a slow reader takes none from another', async () => {
    const slow = await ask('who=ada&format=csv');
    expect(slow.statusCode).toBe(200);
    expect((await ask('who=ada&format=csv')).statusCode).toBe(503);
    const other = await ask('who=bob&format=csv');
    expect(other.statusCode).toBe(200);
    expect((await ask('who=eve&format=csv')).statusCode).toBe(503);
    expect(await read(other)).toMatchObject({ whole: true });
    expect((await ask('who=eve&format=csv')).statusCode).toBe(200);
    slow.destroy();
    await expect.poll(async () => (await ask('who=ada&format=csv')).statusCode).toBe(200);
  });

  it('break off for a reader who is signed out meanwhile', async () => {
    const whole = await read(await ask('who=bob&format=csv'));
    expect(whole.whole).toBe(true);
    const slow = await ask('who=ada&format=csv');
    ended.add('ada');
    const rest = await read(slow);
    expect(rest.whole).toBe(false);
    expect(rest.bytes).toBeLessThan(whole.bytes / 2);
  });

  it('break off at their deadline, however steadily they are read', async () => {
    const { timeout } = AbortSignal;
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((time) => timeout(time === 300_000 ? 200 : time));
    const slow = await ask('who=ada&format=csv');
    expect(await once(slow, 'readable')).toBeDefined();
    await expect.poll(async () => (await ask('who=ada&format=csv')).statusCode).toBe(200);
    expect((await read(slow)).whole).toBe(false);
  });

  it('are recorded with their filters, and no more of them than a record holds', async () => {
    await read(await ask('who=ada&format=csv'));
    await read(await ask('who=ada&format=csv&agent=support&class=Post'));
    await read(await ask(`who=ada&format=csv&tool=${'x'.repeat(400)}`));
    expect(targets.slice(0, 2)).toEqual([undefined, 'agent=support&class=Post']);
    expect(targets[2]).toMatch(/^tool=x{194}…$/);
  });
});

describe('searches of audit records', () => {
  it('end with their reader, who leaves the place to another', async () => {
    trail.gate = new Promise(() => undefined);
    const { port } = server.address() as AddressInfo;
    const readers = ['ada', 'ada', 'bob', 'bob'].map((who) =>
      get({ port, host: '127.0.0.1', path: `/?who=${who}`, agent: false }).on('error', () => undefined),
    );
    await expect.poll(() => trail.searches).toBe(4);
    expect((await ask('who=eve')).statusCode).toBe(503);
    for (const reader of readers) reader.destroy();
    trail.gate = Promise.resolve();
    await expect.poll(async () => (await ask('who=ada')).statusCode).toBe(200);
  });

  it('run two at once of one operator, and four of all', async () => {
    let open = () => undefined as void;
    trail.gate = new Promise<void>((resolve) => (open = resolve));
    const waiting = ['ada', 'ada', 'bob', 'bob'].map((who) => ask(`who=${who}`));
    await expect.poll(() => trail.searches).toBe(4);
    for (const who of ['ada', 'eve']) {
      const refused = await ask(`who=${who}`);
      expect(refused.statusCode).toBe(503);
    }
    expect(trail.searches).toBe(4);
    open();
    expect((await Promise.all(waiting)).map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
    expect((await ask('who=ada')).statusCode).toBe(200);
  });
});
