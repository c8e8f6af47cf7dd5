import {
  type Algorithm,
  ALGORITHMS,
  DEFAULT_ISSUER,
  isResourceUrl,
  isScopeName,
  isTrustworthyUrl,
  parseExpiry,
  parseKeyHash,
  resourceUrls,
  TrustedNetworks,
} from '#auth';
import { hasRedis, isJsonObject, type JsonObject } from '#core';
import { type ConfigIssue, noAgent } from '../config-error.js';
import {
  ArrayMinSize,
  Equals,
  IsArray,
  IsBoolean,
  IsIn,
  IsNumber,
  IsString,
  Matches,
  Max,
  Min,
} from 'class-validator';
import type { SchemaNode } from '#schema';
import { AnyOf, IsText, IsTexts, MapOf, Nested, Option } from '../schema/option.js';

const TEXT: SchemaNode = { type: 'string', minLength: 1 };
const TEXTS: SchemaNode = { type: 'array', minItems: 1, items: TEXT };
/** A claim, or the names that lead to one inside others. */
export const CLAIM: readonly SchemaNode[] = [TEXT, TEXTS];

const HTTP_URL = /^https?:\/\//;
const HEADER_NAME = /^[A-Za-z0-9-]+$/;

/** Introspection: a request to the issuer whether a token still holds. */
export class IntrospectionConfig {
  @Option('the introspection endpoint; default: the one in the metadata of the issuer')
  @IsString()
  @Matches(HTTP_URL, { message: 'a URL with http:// or https://' })
  readonly endpoint?: string;

  @Option('of this service, as a client of the issuer', { required: true })
  @IsText()
  readonly clientId!: string;

  @Option('of this service, as a client of the issuer', { required: true })
  @IsText()
  readonly clientSecret!: string;

  @Option('seconds that a positive answer is cached', { default: 5 })
  @IsNumber()
  @Min(0)
  @Max(300)
  readonly cache?: number;
}

/** `auth.*.oauth`: access tokens of one issuer (docs/operations/oauth.md). Defaults are those of `#auth`. */
export class OAuthConfig {
  @Option('exactly the `iss` of the tokens; https, or http on this machine', { required: true })
  @IsString()
  @Matches(HTTP_URL, { message: 'a URL with http:// or https://' })
  readonly issuer!: string;

  @Option('accepted `aud` of tokens: one value, or a list of which one must match', { required: true })
  @AnyOf(TEXT, TEXTS)
  readonly audience!: string | readonly string[];

  @Option(
    'scopes that select another agent than that of the rule, in order from the fewest to the most rights: a token with several of them gets the last in this order',
  )
  @MapOf(TEXT)
  readonly scopes?: Readonly<Record<string, string>>;

  @Option('a token without all of them is answered with 403')
  @IsTexts()
  readonly requiredScopes?: readonly string[];

  @Option('the claim with the scopes, a text with spaces or a list')
  @AnyOf(...CLAIM)
  readonly scopeClaim?: string | readonly string[];

  @Option('the URL of the keys of the issuer')
  @IsString()
  @Matches(HTTP_URL, { message: 'a URL with http:// or https://' })
  readonly jwksUri?: string;

  @Option('some of `RS256` `RS384` `RS512` `PS256` `PS384` `PS512` `ES256` `ES384` `ES512` `EdDSA`')
  @IsArray()
  @ArrayMinSize(1)
  @IsIn([...ALGORITHMS], { each: true })
  readonly algorithms?: readonly Algorithm[];

  @Option('seconds by which clocks may differ', { default: DEFAULT_ISSUER.clockSkew })
  @IsNumber()
  @Min(0)
  @Max(300)
  readonly clockSkew?: number;

  @Option(
    '`{ clientId, clientSecret, endpoint, cache }`: asks the issuer on every call; see [revocation](#revocation)',
  )
  @Nested(IntrospectionConfig)
  readonly introspection?: IntrospectionConfig;

  @Option('checks the revocations of `parley revoke`; needs Redis', { default: false })
  @IsBoolean()
  readonly revocationList?: boolean;
}

/** A header and the value that it must have. */
export class VerifiedHeaderConfig {
  @Option('name of the header', { required: true })
  @IsString()
  @Matches(HEADER_NAME, { message: 'the name of a header: letters, digits and -' })
  readonly header!: string;

  @Option('the value that it must have', { required: true })
  @IsText()
  readonly value!: string;
}

/** `auth.*.clientCertificate`: certificates of clients, verified by a proxy. */
export class ClientCertificateConfig {
  @Option(
    'the header in which the proxy names the verified certificate. The proxy must overwrite it on every request',
    { required: true },
  )
  @IsString()
  @Matches(HEADER_NAME, { message: 'the name of a header: letters, digits and -' })
  readonly header!: string;

  @Option(
    'a header and its required value, for proxies that also forward certificates that they did not verify; default: none',
  )
  @Nested(VerifiedHeaderConfig)
  readonly verified?: VerifiedHeaderConfig;

  @Option(
    'addresses and networks of the trusted proxies; from any other peer the header counts as a wrong credential',
    { required: true },
  )
  @IsTexts()
  @ArrayMinSize(1)
  readonly trustedProxies!: readonly string[];

  @Option('complete subjects, as the proxy writes them; each is a separate principal', { required: true })
  @IsTexts()
  @ArrayMinSize(1)
  readonly subjects!: readonly string[];
}

/** One entry of `auth`. That it is of one kind is checked by `authRuleErrors`. */
export class AuthRuleEntry {
  @Option('the agent that callers of this rule run as', { required: true })
  @IsText()
  readonly agent!: string;

  @Option('names the credential in records, in the console and for `parley keys`; each name once')
  @IsString()
  @Matches(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, {
    message: 'a letter or digit, then letters, digits and _ . -, 64 characters at most',
  })
  readonly name?: string;

  @Option(
    'the end of a key or certificate: a date (its beginning in UTC) or a time with its zone; needs `name`. See [end of a key](#names-and-ends)',
  )
  @IsText()
  readonly expires?: string;

  @Option('`X-MCP-API-Key`, or `Authorization: Bearer`; compared in constant time')
  @IsText()
  readonly apiKey?: string;

  @Option('the same key; the file contains only its hash: see [keys](#keys)')
  @IsText()
  readonly apiKeyHash?: string;

  @Option('callers on this machine without a credential, unless they are a proxy for others')
  @Equals(true)
  readonly anonymous?: true;

  @Option('`X-Parse-Session-Token`: the user is principal and identity')
  @Equals(true)
  readonly parseSession?: true;

  @Option('the client certificate that a proxy verified: see [certificates](#certificates)')
  @Nested(ClientCertificateConfig)
  readonly clientCertificate?: ClientCertificateConfig;

  @Option('access tokens of an issuer: [OAuth](oauth.md)')
  @Nested(OAuthConfig)
  readonly oauth?: OAuthConfig;
}

type RuleOf<Kind extends (typeof KINDS)[number]> = Pick<AuthRuleEntry, 'agent' | 'name' | 'expires'> & {
  readonly [Name in Kind]: NonNullable<AuthRuleEntry[Name]>;
};

/** A rule is of exactly one kind. */
export type AuthRuleConfig =
  | RuleOf<'apiKey'>
  | RuleOf<'apiKeyHash'>
  | RuleOf<'clientCertificate'>
  | RuleOf<'oauth'>
  | RuleOf<'parseSession'>
  | RuleOf<'anonymous'>;

/** What a rule may recognise its callers by. */
export const KINDS = [
  'apiKey',
  'apiKeyHash',
  'anonymous',
  'parseSession',
  'clientCertificate',
  'oauth',
] as const;

/**
 * Checks beyond the form of `auth`: each rule is of one kind and names agents that exist. Reads whatever form the
 * file has, so that these errors are listed together with those of the schema.
 * @param fallback the agent that exists when the file names none
 */
export function authRuleErrors(config: unknown, fallback: string): ConfigIssue[] {
  if (!isJsonObject(config) || !Array.isArray(config['auth'])) return [];
  const declared = isJsonObject(config['agents']) ? Object.keys(config['agents']) : [];
  const names = new Set(declared.length > 0 ? declared : [fallback]);
  const errors: ConfigIssue[] = [];
  const named = new Map<unknown, string>();
  for (const [index, rule] of (config['auth'] as unknown[]).entries()) {
    if (!isJsonObject(rule)) continue;
    const path = `auth.${index}`;
    const { agent } = rule;
    if (typeof agent === 'string' && !names.has(agent))
      errors.push({ path: `${path}.agent`, ...noAgent(agent, names) });
    if (KINDS.filter((kind) => kind in rule).length !== 1)
      errors.push({ path, message: `exactly one of ${KINDS.join(', ')} is needed` });
    errors.push(...nameErrors(rule, path, named));
    errors.push(...valueErrors(rule, path));
  }
  return [...errors, ...oauthErrors(config, names)];
}

/** @param named the rule of each name so far */
function nameErrors(rule: JsonObject, path: string, named: Map<unknown, string>): ConfigIssue[] {
  const { name, expires } = rule;
  const errors: ConfigIssue[] = [];
  const holder = named.get(name);
  if (name !== undefined && holder !== undefined)
    errors.push({
      path: `${path}.name`,
      message: `is the name of ${holder} already: records would mean both`,
    });
  if (name !== undefined) named.set(name, path);
  if (expires === undefined) return errors;
  if (name === undefined)
    errors.push({
      path: `${path}.expires`,
      message: 'needs a name beside it: warnings and records say which key ended',
    });
  if ('oauth' in rule || 'parseSession' in rule)
    errors.push({
      path: `${path}.expires`,
      message: 'is for keys and certificates: tokens and sessions have an end of their own',
    });
  return errors;
}

/** Texts that a part of the service reads itself. */
function valueErrors({ apiKeyHash, clientCertificate, expires }: JsonObject, path: string): ConfigIssue[] {
  const read = (at: string, reading: () => unknown): ConfigIssue[] => {
    try {
      reading();
      return [];
    } catch (error) {
      return [{ path: `${path}.${at}`, message: (error as Error).message }];
    }
  };
  const proxies = isJsonObject(clientCertificate) ? clientCertificate['trustedProxies'] : undefined;
  return [
    ...(typeof apiKeyHash === 'string' ? read('apiKeyHash', () => parseKeyHash(apiKeyHash)) : []),
    ...(typeof expires === 'string' ? read('expires', () => parseExpiry(expires)) : []),
    ...(Array.isArray(proxies) && proxies.every((entry) => typeof entry === 'string')
      ? read('clientCertificate.trustedProxies', () => new TrustedNetworks(proxies))
      : []),
  ];
}

/** Checks beyond the form of `auth.*.oauth`, and of the URL that its clients know. */
function oauthErrors(config: JsonObject, agents: ReadonlySet<string>): ConfigIssue[] {
  const rules = (config['auth'] as unknown[]).flatMap((rule, index) => {
    const oauth = isJsonObject(rule) ? rule['oauth'] : undefined;
    return isJsonObject(oauth) ? [{ oauth, path: `auth.${index}.oauth` }] : [];
  });
  if (rules.length === 0) return [];
  const issuers = rules.map(({ oauth }) => oauth['issuer']);
  return [
    ...rules.flatMap(({ oauth, path }, at): ConfigIssue[] => [
      ...addressErrors(oauth, path),
      ...scopeErrors(oauth, path, agents),
      ...(oauth['revocationList'] === true && !(isJsonObject(config['redis']) && hasRedis(config['redis']))
        ? [
            {
              path: `${path}.revocationList`,
              message: 'needs Redis (redis.url): an operator writes it from elsewhere',
              related: ['redis.url'],
            },
          ]
        : []),
      ...(issuers.indexOf(issuers[at]) < at
        ? [{ path: `${path}.issuer`, message: 'has a rule already: two would judge the same tokens' }]
        : []),
    ]),
    ...resourceErrors(
      config,
      rules.map(({ oauth }) => oauth),
    ),
  ];
}

function addressErrors(oauth: JsonObject, path: string): ConfigIssue[] {
  const { issuer, jwksUri, introspection } = oauth;
  const endpoint = isJsonObject(introspection) ? introspection['endpoint'] : undefined;
  const addresses = { issuer, jwksUri, 'introspection.endpoint': endpoint };
  return Object.entries(addresses).flatMap(([name, url]) =>
    typeof url !== 'string' || (isTrustworthyUrl(url) && (name !== 'issuer' || !url.includes('?')))
      ? []
      : [{ path: `${path}.${name}`, message: 'must be an https URL (http only on this machine)' }],
  );
}

function scopeErrors(oauth: JsonObject, path: string, agents: ReadonlySet<string>): ConfigIssue[] {
  const { scopes, requiredScopes } = oauth;
  const errors: ConfigIssue[] = [];
  const assertScope = (at: string, name: unknown) => {
    // Names of digits alone would be sorted to the front, and the order of scopes has a meaning.
    if (typeof name === 'string' && (!isScopeName(name) || /^\d+$/.test(name)))
      errors.push({ path: `${path}.${at}`, message: `'${name}' cannot be the name of a scope` });
  };
  for (const [scope, agent] of Object.entries(isJsonObject(scopes) ? scopes : {})) {
    assertScope('scopes', scope);
    if (typeof agent === 'string' && !agents.has(agent))
      errors.push({ path: `${path}.scopes.${scope}`, ...noAgent(agent, agents) });
  }
  if (Array.isArray(requiredScopes)) for (const name of requiredScopes) assertScope('requiredScopes', name);
  return errors;
}

function resourceErrors(config: JsonObject, rules: readonly JsonObject[]): ConfigIssue[] {
  const server = isJsonObject(config['server']) ? config['server'] : {};
  const given = server['publicUrl'] ?? null;
  const path = 'server.publicUrl';
  if (typeof given === 'string')
    return isResourceUrl(given)
      ? []
      : [{ path, message: 'must be an https URL (http only on this machine)' }];
  const [first, ...others] = new Set(rules.map(({ audience }) => resourceUrls(audience)[0]));
  if (first === undefined)
    return [
      {
        path,
        message: 'is needed where the first audience is not the URL of this service',
        related: ['auth.*'],
      },
    ];
  return others.length === 0
    ? []
    : [{ path, message: 'is needed where issuers have different audiences', related: ['auth.*'] }];
}
