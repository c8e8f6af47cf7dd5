import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AddressRule, ForbiddenAddress, sendPinned } from './pinned-request.js';

const OUTSIDE = '203.0.113.7';
const HERE = '127.0.0.1';

let server: Server;
let other: Server;
let port: number;
const reached: { where: string; headers: IncomingHttpHeaders }[] = [];
beforeAll(async () => {
  const serving = (where: string) =>
    createServer((request, response) => {
      reached.push({ where, headers: request.headers });
      if (request.url === '/elsewhere') {
        response.writeHead(302, { Location: `http://127.0.0.2:${port}/` }).end();
      } else if (request.url === '/compressed') {
        response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync('{"packed":true}'));
      } else request.pipe(response);
    });
  server = serving('first');
  await new Promise<void>((resolve) => server.listen(0, HERE, resolve));
  port = (server.address() as AddressInfo).port;
  other = serving('second');
  await new Promise<void>((resolve) => other.listen(port, '127.0.0.2', resolve));
});
afterAll(() => {
  server.close();
  other.close();
});
beforeEach(() => void reached.splice(0));

/** A name server that returns a different address for every lookup. */
function changing(...answers: (readonly string[])[]) {
  let asked = 0;
  const resolve = () => Promise.resolve(answers[Math.min(asked++, answers.length - 1)] as readonly string[]);
  return { resolve, asked: () => asked };
}

const signal = AbortSignal.timeout(20_000);
const ask = (rule: AddressRule, resolve: () => Promise<readonly string[]>, path = '/') =>
  sendPinned(`http://hooks.example:${port}${path}`, {
    signal,
    rule,
    resolve,
    method: 'POST',
    body: '{"a":1}',
  });
const causeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: unknown) => (error as Error).cause,
  );

describe('a request to an address that was checked', () => {
  it('looks the name up once and goes to that answer, under the name', async () => {
    const names = changing(['127.0.0.2'], [HERE]);
    const answer = await ask('any', names.resolve);
    expect([answer.status, await answer.text()]).toEqual([200, '{"a":1}']);
    expect(reached).toMatchObject([{ where: 'second', headers: { host: `hooks.example:${port}` } }]);
    expect(names.asked()).toBe(1);
  });

  it('does not look again after a permitted answer, which the next one would take to this machine', async () => {
    const gone = new AbortController();
    const names = changing([OUTSIDE], [HERE]);
    const resolve = async () => {
      const answer = await names.resolve();
      // Nothing leaves this machine in a test.
      gone.abort(new Error('gone'));
      return answer;
    };
    const asked = sendPinned(`http://hooks.example:${port}/`, {
      signal: gone.signal,
      rule: 'public',
      resolve,
    });
    await expect(asked).rejects.toThrow('gone');
    expect([names.asked(), reached]).toEqual([1, []]);
  });

  it.each<[AddressRule, string[]]>([
    ['public', [HERE]],
    ['public', ['10.0.0.7']],
    ['public', ['::ffff:127.0.0.1']],
    ['public', [OUTSIDE, HERE]],
    ['public', [OUTSIDE, 'fd12::1']],
    ['elsewhere', [HERE]],
    ['elsewhere', ['::1']],
    ['elsewhere', ['0.0.0.0']],
    ['elsewhere', ['169.254.169.254']],
    ['elsewhere', ['10.0.0.7', HERE]],
    ['elsewhere', ['::ffff:7f00:1']],
  ])('is not sent under the rule %s to a name with the addresses %s', async (rule, addresses) => {
    expect(await causeOf(ask(rule, () => Promise.resolve(addresses)))).toBeInstanceOf(ForbiddenAddress);
    expect(reached).toEqual([]);
  });

  it('is sent to this machine where the address says so, and a name of this machine leads nowhere else', async () => {
    for (const rule of ['public', 'elsewhere'] as const) {
      const here = `http://localhost:${port}/`;
      expect((await sendPinned(here, { signal, rule, resolve: changing([HERE]).resolve })).status).toBe(200);
      const elsewhere = sendPinned(here, { signal, rule, resolve: changing(['10.0.0.7']).resolve });
      expect(await causeOf(elsewhere)).toBeInstanceOf(ForbiddenAddress);
      expect((await sendPinned(`http://127.0.0.1:${port}/`, { signal, rule })).status).toBe(200);
    }
  });

  it.each(['http://10.0.0.7/', 'http://169.254.169.254/latest', 'http://[fd12::1]/'])(
    'is not sent to %s where only public addresses are permitted',
    async (url) => {
      expect(await causeOf(sendPinned(url, { signal, rule: 'public' }))).toBeInstanceOf(ForbiddenAddress);
    },
  );

  it('answers with a redirect and does not follow it', async () => {
    const answer = await ask('any', changing([HERE]).resolve, '/elsewhere');
    expect(answer.status).toBe(302);
    expect(reached).toMatchObject([{ where: 'first' }]);
  });

  it('reads a compressed answer', async () => {
    const answer = await ask('any', changing([HERE]).resolve, '/compressed');
    expect(await answer.json()).toEqual({ packed: true });
  });

  it('says that a name has no address, as the network does', async () => {
    expect(await causeOf(ask('any', () => Promise.resolve([])))).toMatchObject({ code: 'ENOTFOUND' });
  });
});
