import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIENCE, outage, type SmallIssuer, startIssuer } from '#auth/contracts';
import { type RedisServer, startRedis } from '#state/contracts';
import { POSTS_SEED, POSTS_POLICY } from '../../fixtures/posts.fixture.js';
import { callTool, openSession, rpc, type Service, startService } from '../../support/service.js';

const WAIT = { timeout: 60_000, interval: 100 };
const OWN_KEY = 'a key of my own would have spaces'.replaceAll(' ', '-');
const CLI = fileURLToPath(new URL('../../../dist/bundle/cli.js', import.meta.url));

/** By agent: the tool that it alone lacks, by which tests recognise it. */
const LACKS = {
  ofAsked: 'get_object',
  ofListed: 'query_class',
  generated: 'get_schema',
  own: 'count_objects',
};

/** `parley hash-key`, with what is piped into it. */
async function hashKey(args: readonly string[], piped = ''): Promise<string> {
  const running = promisify(execFile)(process.execPath, [CLI, 'hash-key', ...args]);
  running.child.stdin?.end(piped);
  return (await running).stdout;
}

/** Tokens that it does not want any more. */
const takenBack = new Set<string>();
const answered = {
  /** Who asked it, and with what. */
  introspections: [] as { authorization: string | undefined; body: string }[],
};

function introspecting(issuer: SmallIssuer): void {
  issuer.instead.set('/introspect', (request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      answered.introspections.push({ authorization: request.headers.authorization, body });
      const token = new URLSearchParams(body).get('token') ?? '';
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ active: !takenBack.has(token) }));
    });
  });
}

let asked: SmallIssuer;
let listed: SmallIssuer;
let redis: RedisServer;
let service: Service;
let generated: string;

beforeAll(async () => {
  [asked, listed, redis] = await Promise.all([startIssuer(), startIssuer(), startRedis()]);
  introspecting(asked);
  const [made, own] = await Promise.all([hashKey(['--generate']), hashKey([], `${OWN_KEY}\n`)]);
  generated = /^key: +(\S+)$/m.exec(made)?.[1] ?? '';
  const agents = Object.fromEntries(
    Object.entries(LACKS).map(([agent, tool]) => [
      agent,
      { rateLimit: 1_000_000, tenantId: 'acme', tools: { except: [tool] } },
    ]),
  );
  service = await startService({
    seed: POSTS_SEED,
    config: {
      redis: { url: redis.url },
      agents,
      auth: [
        {
          agent: 'ofAsked',
          oauth: {
            issuer: asked.issuer,
            audience: AUDIENCE,
            clockSkew: 0,
            introspection: { clientId: 'parley', clientSecret: 'its-own-secret', cache: 0 },
          },
        },
        {
          agent: 'ofListed',
          oauth: { issuer: listed.issuer, audience: AUDIENCE, clockSkew: 0, revocationList: true },
        },
        { agent: 'generated', apiKeyHash: /^hash: +(\S+)$/m.exec(made)?.[1] },
        { agent: 'own', apiKeyHash: own.trim() },
      ],
      policy: POSTS_POLICY,
      console: { operators: ['ofAsked'] },
    },
  });
});
afterAll(async () => {
  await service?.stop();
  await Promise.all([asked?.close(), listed?.close(), redis?.stop()]);
});

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const statusFor = async (headers: Record<string, string>) =>
  (await rpc(service, 'tools/list', {}, headers)).status;
/** The agent that credentials lead to, known by the tool that it lacks. */
async function whoIs(headers: Record<string, string>): Promise<string[]> {
  const { body } = await rpc(service, 'tools/list', {}, headers);
  const names = (body['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name);
  return Object.entries(LACKS).flatMap(([agent, tool]) => (names.includes(tool) ? [] : [agent]));
}

/** A listening stream, and when it is over. */
async function listening(headers: Record<string, string>) {
  const session = await openSession(service, headers);
  const stream = await fetch(service.url, {
    headers: { ...session, Accept: 'text/event-stream' },
  });
  expect(stream.status).toBe(200);
  let isOver = false;
  void (async () => {
    for await (const _ of stream.body as unknown as AsyncIterable<Uint8Array>);
  })()
    .catch(() => undefined)
    .finally(() => (isOver = true));
  return () => isOver;
}

describe('several issuers', () => {
  it('are each asked about their own tokens, which lead to their own agents', async () => {
    expect(await whoIs(bearer(await asked.token()))).toEqual(['ofAsked']);
    expect(await whoIs(bearer(await listed.token()))).toEqual(['ofListed']);
  });

  it('vouch for nobody in the name of another', async () => {
    const forged = await asked.token({ iss: listed.issuer });
    expect(await statusFor(bearer(forged))).toBe(401);
    expect(await statusFor(bearer(await listed.token({ iss: 'https://nobody.example' })))).toBe(401);
  });
});

describe('an issuer that is asked on every call', () => {
  it('is asked with our own credentials, and believed when it takes a token back', async () => {
    const token = await asked.token();
    expect(await statusFor(bearer(token))).toBe(200);
    expect(answered.introspections.at(-1)).toEqual({
      authorization: `Basic ${btoa('parley:its-own-secret')}`,
      body: new URLSearchParams({ token, token_type_hint: 'access_token' }).toString(),
    });
    takenBack.add(token);
    expect(await statusFor(bearer(token))).toBe(401);
    expect(await statusFor(bearer(await asked.token({ sub: 'grace' })))).toBe(200);
  });

  it('admits nobody while it is away, with another answer than a refusal', async () => {
    const token = await asked.token();
    outage(asked);
    try {
      const answer = await rpc(service, 'tools/list', {}, bearer(token));
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
      expect(await statusFor(bearer(await listed.token()))).toBe(200);
    } finally {
      asked.instead.clear();
      introspecting(asked);
    }
    await expect.poll(() => statusFor(bearer(token)), WAIT).toBe(200);
  });

  it('lets an operator in at the console, for as long as it vouches for the token', async () => {
    const token = await asked.token();
    const changing = { 'X-Parley-Console': '1', 'Content-Type': 'application/json' };
    const signIn = (key: string) =>
      fetch(`${service.origin}/console/session`, {
        method: 'POST',
        headers: changing,
        body: JSON.stringify({ key }),
      });
    const signedIn = await signIn(token);
    expect(await signedIn.json()).toMatchObject({ signed_in: true, agent: 'ofAsked', tenant_id: 'acme' });
    const Cookie = (signedIn.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
    expect(Cookie).not.toContain(token.split('.')[1]);
    const status = () => fetch(`${service.origin}/console/api/status`, { headers: { Cookie } });
    expect((await status()).status).toBe(200);
    expect((await signIn(await listed.token())).status).toBe(403);
    expect((await signIn(`${token}x`)).status).toBe(401);
    takenBack.add(token);
    expect((await status()).status).toBe(401);
  });
});

describe('a stream that stays open', () => {
  it('ends with the token that opened it, and when that is taken back', { timeout: 90_000 }, async () => {
    const shortly = Math.floor(Date.now() / 1000) + 4;
    const [ending, revoked, lasting] = [
      await listed.token({ exp: shortly }),
      await asked.token({ sub: 'revoked' }),
      await listed.token(),
    ];
    const [ended, gone, stays] = [
      await listening(bearer(ending)),
      await listening(bearer(revoked)),
      await listening(bearer(lasting)),
    ];
    takenBack.add(revoked);
    await expect.poll(ended, WAIT).toBe(true);
    await expect.poll(gone, WAIT).toBe(true);
    expect(stays()).toBe(false);
    for (const token of [ending, revoked]) expect(await statusFor(bearer(token))).toBe(401);
  });
});

describe('keys of which only hashes are configured', () => {
  it('open what their hashes were configured for', async () => {
    expect(await whoIs({ 'X-MCP-API-Key': generated })).toEqual(['generated']);
    expect(await whoIs({ 'X-MCP-API-Key': OWN_KEY })).toEqual(['own']);
    expect(await statusFor({ 'X-MCP-API-Key': `${OWN_KEY}x` })).toBe(401);
  });
});

describe('a revocation list that cannot be read', () => {
  it('admits nobody whom it could name, and everybody else', async () => {
    const token = await listed.token();
    expect(await statusFor(bearer(token))).toBe(200);
    redis.pause();
    try {
      const answer = await rpc(service, 'tools/list', {}, bearer(token));
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5']);
      expect(answer.text).not.toMatch(/redis|revo/i);
      // Admitted, though what counts requests is away as well: a call is answered, as one that cannot be counted.
      const known = await callTool(service, 'list_tools', {}, { 'X-MCP-API-Key': generated });
      expect(known).toMatchObject({ isError: true, code: 'rate_limited' });
    } finally {
      redis.resume();
    }
    await expect.poll(() => statusFor(bearer(token)), WAIT).toBe(200);
  });
});
