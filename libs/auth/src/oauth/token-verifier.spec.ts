import { createHmac } from 'node:crypto';
import { exportSPKI, importJWK, type JWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER } from '#core';
import { AUDIENCE, makeKey, type SmallIssuer, startIssuer } from '../contracts/index.js';
import { InvalidToken } from '../errors.js';
import { Grant } from './grants.js';
import { type OAuthIssuer, oauthRule } from './oauth-rule.js';
import { VerifiedTokens } from './token-verifier.js';

const reader = compileAgentDefinition('reader');
const base = new Grant({
  definition: reader,
  identity: MASTER,
  users: { findUser: () => Promise.resolve(null) },
});
const bearer = (token: string) => ({
  headers: { authorization: `Bearer ${token}` },
  remoteAddress: '203.0.113.9',
});

let issuer: SmallIssuer;
beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());

const createRule = (options: Partial<OAuthIssuer> = {}) =>
  oauthRule(
    { issuer: issuer.issuer, audience: AUDIENCE, ...options },
    { grants: { required: [], base, steps: [] } },
  );
const encodeSegment = (value: object | string) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const seconds = () => Math.floor(Date.now() / 1000);
/** The same token with other bytes in front of its signature. */
const rewritten = (token: string, at: 0 | 1, text: string) => {
  const parts = token.split('.');
  parts[at] = encodeSegment(text);
  return parts.join('.');
};

describe('a token of the issuer', () => {
  it.each<[string, Record<string, unknown>]>([
    ['for this audience', {}],
    ['for several audiences', { aud: ['https://other.example.com', AUDIENCE] }],
    ['that ended within the skew of clocks', { exp: seconds() - 5 }],
    ['that begins within the skew of clocks', { nbf: seconds() + 5 }],
    ['that was issued within the skew of clocks', { iat: seconds() + 5 }],
    ['that does not say when it was issued', { iat: undefined }],
  ])('is accepted %s', async (_, claims) => {
    const agent = await createRule().recognise(bearer(await issuer.token(claims)));
    expect(agent).toMatchObject({ definition: reader, principal: `oauth:${issuer.issuer}|ada` });
  });

  it.each(['at+jwt', 'AT+JWT', 'application/at+jwt', 'JWT', undefined])('may be of type %s', async (typ) => {
    const token = await issuer.token({}, { header: { typ } });
    expect(await createRule().recognise(bearer(token))).not.toBeNull();
  });

  it.each(['RS256', 'PS256', 'ES384', 'EdDSA'])('may be signed with %s', async (alg) => {
    const key = await makeKey(alg, `key for ${alg}`);
    issuer.keys.push(key.jwk);
    expect(await createRule().recognise(bearer(await issuer.token({}, { key })))).not.toBeNull();
  });

  it('of another issuer is another rule’s business', async () => {
    const token = await issuer.token({ iss: 'https://elsewhere.example.com' });
    expect(await createRule().recognise(bearer(token))).toBeNull();
  });

  it('is taken from no other header', async () => {
    const token = await issuer.token();
    for (const name of ['x-mcp-api-key', 'x-parse-session-token', 'x-access-token'])
      expect(
        await createRule().recognise({ headers: { [name]: token }, remoteAddress: undefined }),
      ).toBeNull();
    const basic = { headers: { authorization: `Basic ${token}` }, remoteAddress: undefined };
    expect(await createRule().recognise(basic)).toBeNull();
  });
});

/** The claims of a good token, but for the last ones. */
const claimText = (last: string) => `{"iss":"${issuer.issuer}","aud":"${AUDIENCE}","sub":"ada",${last}}`;

type Forgery = () => Promise<string> | string;
const now = seconds();

const FORGERIES: Record<string, Forgery> = {
  expired: () => issuer.token({ exp: now - 60 }),
  'without an end': () => issuer.token({ exp: undefined }),
  'with an end that is no number': () => issuer.signText(claimText(`"exp":"${now + 300}"`)),
  'that never ends': () => issuer.signText(claimText('"exp":1e400')),
  'not valid yet': () => issuer.token({ nbf: now + 120 }),
  'that begins at a time that is no number': () => issuer.token({ nbf: null }),
  'issued in the future': () => issuer.token({ iat: now + 120 }),
  'issued at a time that is no number': () => issuer.token({ iat: new Date().toISOString() }),
  'issued at no time': () => issuer.token({ iat: null }),
  'with a number that readers round': () =>
    issuer.signText(claimText(`"exp":${now + 300},"tenant":9007199254740993`)),
  'for another audience': () => issuer.token({ aud: 'https://other.example.com/mcp' }),
  'for an audience that merely begins alike': () => issuer.token({ aud: `${AUDIENCE}/more` }),
  'for nobody in particular': () => issuer.token({ aud: undefined }),
  'without a subject': () => issuer.token({ sub: undefined }),
  'with a subject that is a list': () => issuer.token({ sub: ['ada'] }),
  'with a subject of a thousand characters': () => issuer.token({ sub: 'a'.repeat(1000) }),
  'with a changed claim': async () =>
    rewritten(
      await issuer.token(),
      1,
      JSON.stringify({ iss: issuer.issuer, aud: AUDIENCE, sub: 'root', exp: now + 300 }),
    ),
  'with a signature cut short': async () => (await issuer.token()).slice(0, -8),
  'with the signature of another key': async () =>
    issuer.token({}, { key: { ...(await makeKey('ES256', 'first')) } }),
  'with the key that its own header brings': async () => {
    const own = await makeKey('ES256', 'mine');
    return issuer.token({}, { key: own, header: { jwk: own.jwk } });
  },
  'that says where its key is': async () => {
    const own = await makeKey('ES256', 'mine');
    return issuer.token(
      {},
      { key: own, header: { jku: `${issuer.issuer}/attack`, x5u: `${issuer.issuer}/attack` } },
    );
  },
  'whose key id is a path': async () =>
    issuer.token({}, { key: await makeKey('ES256', '../../../../dev/null') }),
  'whose key id is a query': async () => issuer.token({}, { key: await makeKey('ES256', "' OR 1=1 --") }),
  'whose key id is an object': async () =>
    rewritten(await issuer.token(), 0, JSON.stringify({ alg: 'ES256', kid: { $ne: null } })),
  'signed with nothing': () =>
    `${encodeSegment({ alg: 'none' })}.${encodeSegment({ iss: issuer.issuer, aud: AUDIENCE, sub: 'ada', exp: now + 300 })}.`,
  'that says none in capitals': async () =>
    rewritten(await issuer.token(), 0, '{"alg":"NONE","kid":"first"}'),
  'signed with the public key as a shared secret': async () => {
    const spki = await exportSPKI((await importJWK(issuer.key.jwk as JWK, 'ES256')) as never);
    const head = `${encodeSegment({ alg: 'HS256', kid: 'first', typ: 'JWT' })}.${encodeSegment({ iss: issuer.issuer, aud: AUDIENCE, sub: 'ada', exp: now + 300 })}`;
    return `${head}.${createHmac('sha256', spki).update(head).digest('base64url')}`;
  },
  'whose algorithm is not the one of its key': async () =>
    rewritten(await issuer.token(), 0, '{"alg":"RS256","kid":"first"}'),
  'with a critical extension nobody knows': async () =>
    rewritten(await issuer.token(), 0, '{"alg":"ES256","kid":"first","crit":["x"],"x":1}'),
  'that says its subject twice': () => issuer.signText(claimText(`"exp":${now + 300},"sub":"root"`)),
  'that says its subject twice, once in escapes': () =>
    issuer.signText(claimText(`"exp":${now + 300},"\\u0073ub":"root"`)),
  'that says something else twice, in the depth of a claim': () =>
    issuer.signText(claimText(`"exp":${now + 300},"realm":{"roles":["a"],"roles":["b"]}`)),
  'that is no object': () => issuer.signText('["ada"]'),
  'that is an id token': () => issuer.token({ nonce: 'n-0S6_WzA2Mj' }),
  'that is an id token with a hash of another token': () =>
    issuer.token({ at_hash: 'MTIzNDU2Nzg5MDEyMzQ1Ng' }),
  'that is an id token by its own word': () => issuer.token({ typ: 'ID' }),
  'that is a refresh token': () => issuer.token({ typ: 'Refresh' }),
  'that is a logout token': () => issuer.token({}, { header: { typ: 'logout+jwt' } }),
  'that is bound to a key whose proof nobody asks for': () => issuer.token({ cnf: { jkt: 'abc' } }),
  'of more characters than any token has': () => issuer.token({ padding: 'x'.repeat(9000) }),
};

describe('a token is refused', () => {
  it.each(Object.entries(FORGERIES))('%s', async (_, forge) => {
    const verdict = createRule().recognise(bearer(await forge()));
    // Refused by this rule, or recognised by none: never an agent.
    await expect(
      verdict.then((agent) => {
        if (agent === null) throw new InvalidToken('not recognised');
        return agent;
      }),
    ).rejects.toBeInstanceOf(InvalidToken);
  });

  it('without anything that it names being fetched', () => {
    expect(issuer.asked).not.toContain('/attack');
  });

  it('when its algorithm is not on the list of the rule', async () => {
    const rule = createRule({ algorithms: ['RS256'] });
    await expect(rule.recognise(bearer(await issuer.token()))).rejects.toBeInstanceOf(InvalidToken);
  });

  it('once it has ended, though it was verified a moment ago', async () => {
    const rule = createRule({ clockSkew: 0 });
    const token = await issuer.token({ exp: seconds() + 2 });
    expect(await rule.recognise(bearer(token))).not.toBeNull();
    await expect
      .poll(
        () =>
          rule.recognise(bearer(token)).then(
            () => 'accepted',
            (error: Error) => error.constructor,
          ),
        {
          timeout: 20_000,
        },
      )
      .toBe(InvalidToken);
  });
});

const keys = {};
const createClaims = (sub: string) => ({ sub, exp: Date.now() / 1000 + 600 });

describe('tokens that were verified a moment ago', () => {
  it('of one subject never push out those of another that has fewer', () => {
    const verified = new VerifiedTokens<object>(60_000, 10);
    for (const at of [1, 2, 3]) verified.keep(`ada ${at}`, keys, createClaims('ada'));
    for (let at = 0; at < 500; at += 1) verified.keep(`eve ${at}`, keys, createClaims('eve'));
    for (const at of [1, 2, 3]) expect(verified.find(`ada ${at}`, keys, 0)).toMatchObject({ sub: 'ada' });
    expect(verified.find('eve 499', keys, 0)).toMatchObject({ sub: 'eve' });
    expect(verified.find('eve 0', keys, 0)).toBeUndefined();
  });

  it('are verified again once their time is over, by other keys, and after they expired', () => {
    let now = 0;
    const verified = new VerifiedTokens<object>(1_000, 10, () => now);
    verified.keep('a', keys, createClaims('ada'));
    verified.keep('b', keys, createClaims('ada'));
    verified.keep('c', keys, { sub: 'ada', exp: Date.now() / 1000 - 10 });
    expect(verified.find('a', keys, 0)).toBeDefined();
    expect(verified.find('b', {}, 0)).toBeUndefined();
    expect(verified.find('c', keys, 0)).toBeUndefined();
    now = 1_001;
    expect(verified.find('a', keys, 0)).toBeUndefined();
  });
});
