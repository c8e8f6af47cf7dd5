import { type Finding, fail, ok } from './finding.js';

/** Milliseconds that an issuer has for each answer. */
const PATIENCE = 5_000;
/** Bytes of an answer; documents of issuers are far shorter. */
const LONGEST = 262_144;

interface Issuer {
  readonly issuer: string;
  readonly jwksUri?: string;
}

/** Whether every issuer of access tokens describes itself, and has keys to verify them with. */
export async function checkOAuth(rules: readonly object[]): Promise<Finding[]> {
  const issuers = rules.flatMap((rule) => ('oauth' in rule ? [rule.oauth as Issuer] : []));
  return (await Promise.all(issuers.map(checkIssuer))).flat();
}

async function checkIssuer({ issuer, jwksUri }: Issuer): Promise<Finding[]> {
  const document = jwksUri === undefined ? await describedBy(issuer) : { issuer, jwks_uri: jwksUri };
  if (document === null)
    return [
      fail(
        'oauth.issuer',
        `${issuer} does not describe itself`,
        'check that issuer is exactly the iss of its tokens, and that its metadata can be reached from here',
      ),
    ];
  const address = document['jwks_uri'];
  const keys = typeof address === 'string' ? (await askFor(address))?.['keys'] : undefined;
  const count = Array.isArray(keys) ? keys.length : 0;
  return [
    ok(
      'oauth.issuer',
      `${issuer} ${jwksUri === undefined ? 'describes itself' : 'has its keys at a fixed address'}`,
    ),
    count > 0
      ? ok('oauth.keys', `${issuer} has ${count} keys`)
      : fail(
          'oauth.keys',
          `the keys of ${issuer} cannot be read`,
          'every token is refused until they can: check jwks_uri',
        ),
  ];
}

type JsonObject = Readonly<Record<string, unknown>>;

/** RFC 8414, then OpenID Connect in both places that are in use. Somebody else's document is none. */
async function describedBy(issuer: string): Promise<JsonObject | null> {
  if (!URL.canParse(issuer)) return null;
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  for (const address of [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]) {
    const document = await askFor(address);
    if (document?.['issuer'] === issuer) return document;
  }
  return null;
}

/** Null for whatever is no JSON object of a reasonable size. Redirects are not followed. */
async function askFor(address: string): Promise<JsonObject | null> {
  try {
    const response = await fetch(address, { redirect: 'manual', signal: AbortSignal.timeout(PATIENCE) });
    if (response.status !== 200 || !response.body) return null;
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > LONGEST) return null;
      chunks.push(chunk);
    }
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as JsonObject)
      : null;
  } catch {
    return null;
  }
}
