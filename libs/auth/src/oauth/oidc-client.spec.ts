import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SmallIssuer, startIssuer } from '../contracts/index.js';
import { InvalidToken } from '../errors.js';
import { type ClaimRule, OidcClient, type ProvenPerson } from './oidc-client.js';
import { issuerTrust } from './oauth-rule.js';

const CLIENT = 'console';
const ADDRESS = 'ada@example.com';

let issuer: SmallIssuer;
beforeAll(async () => {
  issuer = await startIssuer();
  issuer.metadata = { userinfo_endpoint: `${issuer.issuer}/me` };
});
afterAll(() => issuer.close());

/** A sign-in whose ID token and user info have these claims. */
async function signIn(
  claims: { readonly idToken: object; readonly userInfo?: object },
  rules: readonly ClaimRule[],
): Promise<ProvenPerson> {
  const client = new OidcClient({
    issuer: issuer.issuer,
    clientId: CLIENT,
    clientSecret: null,
    redirectUri: 'http://localhost/callback',
    scopes: [],
    rules,
    clockSkew: 5,
    trust: issuerTrust({ issuer: issuer.issuer }),
  });
  const { pending } = await client.begin();
  const members = { aud: CLIENT, nonce: pending.nonce, ...claims.idToken };
  const id_token = await issuer.token(members, { header: { typ: 'JWT' } });
  const answers: Record<string, object> = {
    '/token': { id_token, access_token: 'of ada', token_type: 'Bearer' },
    '/me': { sub: 'ada', ...claims.userInfo },
  };
  for (const [path, answer] of Object.entries(answers))
    issuer.instead.set(path, (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
    });
  return client.person('code', pending);
}

const byAddress = (claim: ClaimRule['claim']): ClaimRule => ({ claim, equals: ADDRESS, agent: 'chief' });

describe.each<ClaimRule['claim']>(['email', ['email']])('a rule of the claim %j', (claim) => {
  const proven = async (idToken: object) => (await signIn({ idToken }, [byAddress(claim)])).proven;

  it('fits an address that the issuer has verified', async () => {
    expect(await proven({ email: ADDRESS, email_verified: true })).toEqual([[claim, ADDRESS]]);
  });

  it.each([undefined, false, null, 'true', 'false', 1, {}])(
    'never fits with email_verified: %j',
    async (value) => {
      expect(await proven({ email: ADDRESS, email_verified: value })).toEqual([]);
    },
  );

  it('never fits a list of addresses', async () => {
    expect(await proven({ email: [ADDRESS], email_verified: true })).toEqual([]);
  });
});

describe('an address in one document', () => {
  const rules: readonly ClaimRule[] = [
    byAddress('email'),
    { claim: 'groups', equals: 'people', agent: 'reader' },
  ];
  const proven = async (idToken: object, userInfo: object) =>
    (await signIn({ idToken, userInfo }, rules)).proven;

  it('is never verified by the other', async () => {
    expect(await proven({ email: ADDRESS }, { email: 'mal@example.com', email_verified: true })).toEqual([]);
    expect(await proven({ email_verified: true }, { email: ADDRESS })).toEqual([]);
    expect(await proven({ email: ADDRESS, email_verified: false }, { email_verified: true })).toEqual([]);
  });

  it('is verified by its own, while other claims come from either', async () => {
    const verified = { email: ADDRESS, email_verified: true };
    expect(await proven(verified, { groups: ['people'], email_verified: false })).toEqual([
      ['email', ADDRESS],
      ['groups', 'people'],
    ]);
    expect(await proven({ groups: ['people'] }, verified)).toHaveLength(2);
  });
});

describe('an ID token', () => {
  const at = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

  it('may come from a clock that is ahead within the skew', async () => {
    expect(await signIn({ idToken: { iat: at(3) } }, [])).toMatchObject({ issuer: issuer.issuer });
  });

  it.each<[string, () => object]>([
    ['that was issued in the future', () => ({ iat: at(60) })],
    ['that does not say when it was issued', () => ({ iat: undefined })],
    ['that was issued at a time that is no number', () => ({ iat: String(at(0)) })],
    ['that is not valid yet', () => ({ nbf: at(60) })],
    ['without an end', () => ({ exp: undefined })],
  ])('%s signs nobody in', async (_, claims) => {
    await expect(signIn({ idToken: claims() }, [])).rejects.toBeInstanceOf(InvalidToken);
  });
});
