import { cutText } from '#core';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { JWSHeaderParameters } from 'jose';
import type { ResolveHost } from '#core';
import { AuthenticationUnavailable, InvalidToken } from '../errors.js';
import { claimAt, type ClaimPath, type Claims, parseToken, toPrincipal } from './claims.js';
import type { KeyRing } from './issuer-metadata.js';
import { requestJson } from './issuer-request.js';
import type { IssuerTrust } from './oauth-rule.js';
import { type Algorithm, ALGORITHMS } from './token-verifier.js';

/** A rule that makes a person an agent: a claim that equals a text, or a list that contains it. */
export interface ClaimRule {
  readonly claim: ClaimPath;
  readonly equals: string | readonly string[];
  readonly agent: string;
}

/** What a claim proved at the sign-in. */
export type ProvenClaim = readonly [claim: ClaimPath, value: string];

/** A person as the issuer named it, as far as rules need it. */
export interface ProvenPerson {
  readonly issuer: string;
  readonly clientId: string;
  /** The principal: that of access tokens of the same person. */
  readonly principal: string;
  /** For display; untrusted. */
  readonly name: string | null;
  readonly proven: readonly ProvenClaim[];
}

/** The agent of the first rule that a person fulfils; null: no rule does. */
export function agentOfRules(rules: readonly ClaimRule[], proven: readonly ProvenClaim[]): string | null {
  const held = new Set(proven.map((one) => JSON.stringify(one)));
  const rule = rules.find(({ claim, equals }) =>
    [equals].flat().some((value) => held.has(JSON.stringify([claim, value]))),
  );
  return rule?.agent ?? null;
}

/** What a sign-in keeps between its two requests. */
export interface PendingSignIn {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636). */
  readonly verifier: string;
}

export interface OidcClientOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Null: a public client, which PKCE alone protects. */
  readonly clientSecret: string | null;
  readonly redirectUri: string;
  readonly scopes: readonly string[];
  readonly rules: readonly ClaimRule[];
  readonly algorithms?: readonly Algorithm[] | undefined;
  /** Seconds. */
  readonly clockSkew: number;
  readonly trust: IssuerTrust;
  /** Default: as the system resolves names. */
  readonly resolve?: ResolveHost | undefined;
}

const unguessable = () => randomBytes(32).toString('base64url');

/** Seconds. An ID token is used where it was requested, at once. */
const LONGEST_AGE = 600;
/** Characters of a token of the issuer. */
const LONGEST_TOKEN = 32_768;
const MAX_NAME = 128;

/** Signs people in with the authorization code flow of OpenID Connect, with PKCE, `state` and `nonce`. */
export class OidcClient {
  constructor(private readonly options: OidcClientOptions) {}

  /** @returns the address at the issuer, and what its answer is compared with. @throws AuthenticationUnavailable */
  async begin(): Promise<{ readonly url: string; readonly pending: PendingSignIn }> {
    const { trust, clientId, redirectUri, scopes } = this.options;
    const pending = { state: unguessable(), nonce: unguessable(), verifier: unguessable() };
    const url = new URL(await trust.documents.endpoint('authorization_endpoint'));
    const challenge = createHash('sha256').update(pending.verifier).digest('base64url');
    const members = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: [...new Set(['openid', ...scopes])].join(' '),
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(members)) url.searchParams.set(name, value);
    return { url: url.href, pending };
  }

  /** Whether the answer may be that of this issuer (RFC 9207). @throws AuthenticationUnavailable */
  async isFromIssuer(iss: string | undefined): Promise<boolean> {
    if (iss !== undefined) return iss === this.options.issuer;
    const metadata = await this.options.trust.documents.current();
    return metadata['authorization_response_iss_parameter_supported'] !== true;
  }

  /**
   * Exchanges the code, and verifies the ID token.
   * @throws InvalidToken, AuthenticationUnavailable
   */
  async person(code: string, { nonce, verifier }: PendingSignIn): Promise<ProvenPerson> {
    const { issuer, clientId } = this.options;
    const { idToken, accessToken } = await this.exchangeCode(code, verifier);
    let claims = await this.verifyToken(idToken, nonce);
    if (accessToken !== null && this.lacksClaim(claims))
      claims = await this.withUserInfo(claims, accessToken);
    const { name } = claims;
    return {
      issuer,
      clientId,
      principal: toPrincipal(issuer, { sub: claims['sub'] }),
      name: typeof name === 'string' ? cutText(name, MAX_NAME) : null,
      proven: this.provenBy(claims),
    };
  }

  /** Where the issuer ends its own session; null: it names no such address. */
  async endOfSession(): Promise<string | null> {
    const { trust, clientId } = this.options;
    try {
      const url = new URL(await trust.documents.endpoint('end_session_endpoint'));
      url.searchParams.set('client_id', clientId);
      return url.href;
    } catch (error) {
      if (error instanceof AuthenticationUnavailable) return null;
      throw error;
    }
  }

  private async exchangeCode(code: string, verifier: string) {
    const { trust, clientId, clientSecret, redirectUri, resolve } = this.options;
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    });
    const headers: Record<string, string> = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const methods = (await trust.documents.current())['token_endpoint_auth_methods_supported'];
    // Basic is the default of the metadata.
    const onlyPost = Array.isArray(methods) && !methods.includes('client_secret_basic');
    if (clientSecret === null || onlyPost) form.set('client_id', clientId);
    if (clientSecret !== null && onlyPost) form.set('client_secret', clientSecret);
    if (clientSecret !== null && !onlyPost) {
      const encoded = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':');
      headers['Authorization'] = `Basic ${Buffer.from(encoded).toString('base64')}`;
    }
    const { status, value } = await requestJson(await trust.documents.endpoint('token_endpoint'), {
      method: 'POST',
      headers,
      body: form.toString(),
      resolve,
    });
    if (status >= 500) throw new AuthenticationUnavailable(`the token endpoint answered ${status}`);
    const idToken = value?.['id_token'];
    const accessToken = value?.['access_token'];
    if (status !== 200 || typeof idToken !== 'string')
      throw new InvalidToken(`the token endpoint answered ${status} ${readError(value)}`);
    return { idToken, accessToken: typeof accessToken === 'string' ? accessToken : null };
  }

  private async verifyToken(token: string, nonce: string): Promise<Claims> {
    const { issuer, clientId, algorithms = ALGORITHMS, clockSkew, trust } = this.options;
    const parts = token.length <= LONGEST_TOKEN ? parseToken(token) : null;
    if (!parts) throw new InvalidToken('no signed ID token');
    const header = parts.header as JWSHeaderParameters;
    if (!algorithms.includes(header.alg as Algorithm)) throw new InvalidToken('algorithm');
    if (header.kid !== undefined && typeof header.kid !== 'string') throw new InvalidToken('kid');
    const { typ } = header;
    if (typ !== undefined && String(typ).toLowerCase() !== 'jwt') throw new InvalidToken('typ');
    const key = await keyFor(header, trust.keys);
    const { jwtVerify, errors } = await import('jose');
    const claims: Claims = await jwtVerify(token, key, {
      issuer,
      audience: clientId,
      algorithms: [...algorithms],
      clockTolerance: clockSkew,
      maxTokenAge: LONGEST_AGE,
      requiredClaims: ['exp', 'iat', 'sub', 'nonce'],
    }).then(
      ({ payload }) => payload,
      (error: unknown) => {
        throw new InvalidToken(error instanceof errors.JOSEError ? error.code : 'a key that does not fit');
      },
    );
    const { aud, azp } = claims;
    if (azp === undefined ? Array.isArray(aud) && aud.length > 1 : azp !== clientId)
      throw new InvalidToken('azp');
    if (!isSameText(claims['nonce'], nonce)) throw new InvalidToken('nonce');
    return claims;
  }

  /** Whether a rule asks for a claim that the ID token does not have. */
  private lacksClaim(claims: Claims): boolean {
    return this.options.rules.some(({ claim }) => claimAt(claims, claim) === undefined);
  }

  /** Members of the ID token win: it is signed. An issuer without a user info endpoint adds nothing. */
  private async withUserInfo(claims: Claims, accessToken: string): Promise<Claims> {
    const { trust, resolve } = this.options;
    if ((await trust.documents.current())['userinfo_endpoint'] === undefined) return claims;
    const { status, value } = await requestJson(await trust.documents.endpoint('userinfo_endpoint'), {
      headers: { Authorization: `Bearer ${accessToken}` },
      resolve,
    });
    if (status >= 500) throw new AuthenticationUnavailable(`the user info endpoint answered ${status}`);
    if (status !== 200 || !value) return claims;
    if (value['sub'] !== claims['sub']) throw new InvalidToken('user info of another subject');
    // The address and its verification are one statement: each document speaks of its own address.
    const { email, email_verified } = claims['email'] === undefined ? value : claims;
    return { ...value, ...claims, email, email_verified };
  }

  private provenBy(claims: Claims): ProvenClaim[] {
    return this.options.rules.flatMap(({ claim, equals }) => {
      const path = [claim].flat();
      const isAddress = path.length === 1 && path[0] === 'email';
      // An unverified address could be that of another person.
      if (isAddress && (claims['email_verified'] !== true || typeof claims['email'] !== 'string')) return [];
      const held: unknown = claimAt(claims, claim);
      const values = new Set<unknown>(Array.isArray(held) ? held : [held]);
      return [equals].flat().flatMap((value): ProvenClaim[] => (values.has(value) ? [[claim, value]] : []));
    });
  }
}

/** An unknown key is fetched once more: the issuer may have rotated. */
async function keyFor(header: JWSHeaderParameters, keys: KeyRing) {
  const known = await keys.current();
  try {
    return await known.find(header);
  } catch (error) {
    if (!(error instanceof InvalidToken)) throw error;
    return (await keys.fetchAgain()).find(header);
  }
}

/** Compared in constant time. */
export function isSameText(given: unknown, expected: string): boolean {
  if (typeof given !== 'string') return false;
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(one as Buffer, other as Buffer);
}

/** The error code of an answer (RFC 6749, 5.2), for the log. */
function readError(value: Claims | null): string {
  const error = value?.['error'];
  return typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? error : '';
}
