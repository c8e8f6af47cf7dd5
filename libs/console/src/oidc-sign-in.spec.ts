import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issuerTrust, OidcClient, RuleAuthenticator } from '#auth';
import { type SmallIssuer, startIssuer } from '#auth/contracts';
import { Agent, compileAgentDefinition, MASTER, ProcessRateLimiters } from '#core';
import { processSecret } from '#dispatcher';
import {
  ProcessMessageBus,
  ProcessOneTimeStore,
  processState,
  ProcessVersionedStore,
  steadyClock,
  SuspendedAgents,
} from '#state';
import { OidcSignIn } from './oidc-sign-in.js';
import { OperatorGate, OperatorNotes } from './operator-gate.js';
import { OperatorSessions } from './operator-sessions.js';
import { SignIn } from './sign-in.js';

const HOST = 'parley.example';
const COOKIE = '__Host-parley-console-sign-in';

let issuer: SmallIssuer;
beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());

/** A console with space for one claim. The person of the issuer is `sub`, and its operator, unless it is `mal`. */
function createConsole() {
  const oneTime = new ProcessOneTimeStore(1);
  const state = {
    bus: new ProcessMessageBus(),
    clock: steadyClock,
    limiters: new ProcessRateLimiters(),
    endedSessions: new ProcessVersionedStore(),
    revocations: new ProcessVersionedStore(),
    oneTime,
  };
  const keys = processSecret();
  const definition = compileAgentDefinition('chief');
  const rights = {
    operators: () => ['chief'],
    approvers: [],
    isCurrent: () => true,
    findAgent: ({ principal }: { principal: string }) =>
      principal.endsWith('|mal') ? null : new Agent({ definition, principal, identity: MASTER }),
  };
  const authenticator = new RuleAuthenticator([]);
  const sessions = new OperatorSessions(keys, state);
  const suspended = new SuspendedAgents(processState());
  const gate = new OperatorGate(authenticator, sessions, rights, state, suspended);
  const notes = new OperatorNotes({ recordEvent: () => undefined });
  const client = new OidcClient({
    issuer: issuer.issuer,
    clientId: 'console',
    clientSecret: null,
    redirectUri: `https://${HOST}/console/session/oidc/callback`,
    scopes: [],
    rules: [],
    clockSkew: 5,
    trust: issuerTrust({ issuer: issuer.issuer }),
  });
  const setting = { issuer: issuer.issuer, client, host: HOST, longest: 3_600_000 };
  const oidc = new OidcSignIn(setting, keys, state, sessions, gate, notes, authenticator);
  const limit = new SignIn(gate, sessions, notes, rights, state);
  return { oidc, oneTime, gate, suspended, spend: (from: IncomingMessage) => () => limit.spend(from) };
}

const createRequest = (cookie?: string, host = HOST) =>
  ({
    headers: { host, ...(cookie !== undefined && { cookie }) },
    rawHeaders: [],
    socket: { remoteAddress: '203.0.113.9' },
  }) as unknown as IncomingMessage;

/** A sign-in that has begun; the issuer answers the code `good` with a token of `sub`. */
async function begun({ oidc, spend }: ReturnType<typeof createConsole>, sub = 'ada') {
  const { location, cookies } = await oidc.begin(createRequest(), spend(createRequest()));
  const asked = new URL(location).searchParams;
  const nonce = asked.get('nonce');
  issuer.instead.set('/token', (request, response) => {
    void (async () => {
      let body = '';
      for await (const piece of request) body += String(piece);
      const isGood = new URLSearchParams(body).get('code') === 'good';
      const id_token = await issuer.token({ aud: 'console', nonce, sub }, { header: { typ: 'JWT' } });
      response.writeHead(isGood ? 200 : 400, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(isGood ? { id_token } : { error: 'invalid_grant' }));
    })();
  });
  const [set = ''] = cookies;
  return { set, cookie: set.split(';')[0] ?? '', state: asked.get('state') };
}

type Finished = Awaited<ReturnType<OidcSignIn['finish']>>;
const GOOD = { code: 'good' };

describe('a person whose agent is suspended', () => {
  it('is not signed in, and a session that the issuer opened before ends', async () => {
    const console = createConsole();
    const finish = async () => {
      const { cookie, state } = await begun(console);
      const request = createRequest(cookie);
      return console.oidc.finish(request, { ...GOOD, state }, console.spend(request));
    };
    const session = (await finish()).cookies.at(-1)?.split(';')[0];
    await console.gate.admit(createRequest(session));
    await console.suspended.suspend({ agent: 'chief', by: 'key:other', reason: 'gone wild' });
    await expect(console.gate.admit(createRequest(session))).rejects.toThrow("agent 'chief' is suspended");
    expect((await finish()).location).toMatch(/sign_in=no_operator$/);
  });
});

describe('the answer of an issuer', () => {
  it('takes no room in the shared store unless it signs an operator in', async () => {
    const console = createConsole();
    for (const [answer, sub] of [
      [{}, 'ada'],
      [{ error: 'access_denied' }, 'ada'],
      [{ code: 'wrong' }, 'ada'],
      [{ code: 'good' }, 'mal'],
    ] as const) {
      const { cookie, state } = await begun(console, sub);
      const request = createRequest(cookie);
      const { location } = await console.oidc.finish(request, { state, ...answer }, console.spend(request));
      expect(location).toMatch(/sign_in=(denied|invalid|no_operator)$/);
    }
    expect(await console.oneTime.claim('of somebody else', 60_000)).toBe(true);
  });

  it('signs in once, and never again with another code', async () => {
    const console = createConsole();
    const { cookie, state } = await begun(console);
    const request = createRequest(cookie);
    const finish = () => console.oidc.finish(request, { ...GOOD, state }, console.spend(request));
    const places = (await Promise.all([finish(), finish(), finish()])).map(({ location }) => location);
    expect(places.sort()).toEqual(['/console', '/console?sign_in=expired', '/console?sign_in=expired']);
  });

  it('that another website sent uses up no attempts, and ends no sign-in that has begun', async () => {
    const console = createConsole();
    const { cookie, state } = await begun(console);
    const finish = (from: IncomingMessage, answer: object): Promise<Finished> =>
      console.oidc.finish(from, answer, console.spend(from));
    for (let time = 0; time < 25; time += 1) {
      for (const answer of [{}, GOOD, { ...GOOD, state: 'guessed' }, { error: 'access_denied' }])
        expect(await finish(createRequest(cookie), answer)).toEqual({
          location: '/console?sign_in=mismatch',
          cookies: [],
        });
      expect((await finish(createRequest(), { ...GOOD, state })).cookies).toEqual([]);
      expect((await finish(createRequest(cookie, 'other.example'), { ...GOOD, state })).cookies).toEqual([]);
    }
    expect((await finish(createRequest(cookie), { ...GOOD, state })).location).toBe('/console');
  });

  it('is limited for a browser that began a sign-in, which may try again later', async () => {
    const console = createConsole();
    const { cookie, state } = await begun(console);
    const request = createRequest(cookie);
    const seen: Finished[] = [];
    for (let time = 0; time < 20; time += 1)
      seen.push(await console.oidc.finish(request, { code: 'wrong', state }, console.spend(request)));
    expect(seen[18]?.location).toBe('/console?sign_in=invalid');
    expect(seen[19]).toEqual({ location: '/console?sign_in=too_many', cookies: [] });
  });

  it('about a person whose session fits into no cookie is refused instead of signing in again and again', async () => {
    const console = createConsole();
    const { cookie, state } = await begun(console, '人'.repeat(255));
    const request = createRequest(cookie);
    const done = await console.oidc.finish(request, { ...GOOD, state }, console.spend(request));
    expect(done.location).toBe('/console?sign_in=invalid');
    expect(done.cookies).toEqual([expect.stringMatching(/^__Host-parley-console-sign-in=;.*Max-Age=0/)]);
  });
});

it('keeps what it asked in a cookie that no other host can set', async () => {
  const { set } = await begun(createConsole());
  expect(set).toMatch(
    new RegExp(`^${COOKIE}=[\\w.-]+; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$`),
  );
});
