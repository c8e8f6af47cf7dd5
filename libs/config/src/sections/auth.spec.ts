import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newKey } from '#auth';
import { ConfigError } from '../config-error.js';
import { loadConfig } from '../load-config.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-auth-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function load(config: object) {
  writeFileSync(join(folder, 'parley.yaml'), JSON.stringify(config));
  return loadConfig({}, folder);
}

function errorsOf(config: object): string[] {
  try {
    load(config);
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path }) => path);
    throw error;
  }
  return [];
}

const AUDIENCE = 'https://parley.example.com/mcp';
const OAUTH = { issuer: 'https://id.example.com', audience: AUDIENCE };
const oauth = (options: object = {}, agents: object = { a: {}, b: {} }) => ({
  agents,
  auth: [{ agent: 'a', oauth: { ...OAUTH, ...options } }],
});

describe('the name and the end of a rule', () => {
  const rules = (...auth: object[]) => ({
    agents: { a: {} },
    auth: auth.map((one) => ({ agent: 'a', ...one })),
  });

  it.each<[string, object]>([
    [
      'a name alone, for tokens and sessions as well',
      rules({ apiKey: 'k', name: 'a-1' }, { parseSession: true, name: 'people' }),
    ],
    ['both', rules({ apiKey: 'k', name: 'a-1', expires: '2027-01-31' })],
    [
      'an end of anonymous access',
      rules({ anonymous: true, name: 'trial', expires: '2027-01-31T18:00:00Z' }),
    ],
  ])('may be %s', (_, config) => {
    expect(errorsOf(config)).toEqual([]);
  });

  it.each<[string, object, string]>([
    [
      'an end without a name, which no record could tell',
      rules({ apiKey: 'k', expires: '2027-01-31' }),
      'auth.0.expires',
    ],
    ['one name twice', rules({ apiKey: 'k', name: 'n' }, { apiKey: 'l', name: 'n' }), 'auth.1.name'],
    [
      'a time without its zone',
      rules({ apiKey: 'k', name: 'n', expires: '2027-01-31T18:00' }),
      'auth.0.expires',
    ],
    ['a day that does not exist', rules({ apiKey: 'k', name: 'n', expires: '2027-02-30' }), 'auth.0.expires'],
    [
      'an end of sessions, which have one',
      rules({ parseSession: true, name: 'n', expires: '2027-01-31' }),
      'auth.0.expires',
    ],
    ['a name with other characters', rules({ apiKey: 'k', name: 'a b' }), 'auth.0.name'],
  ])('are not %s', (_, config, path) => {
    expect(errorsOf(config)).toEqual([path]);
  });

  it('stay where a key closes anonymous access', () => {
    writeFileSync(
      join(folder, 'parley.yaml'),
      JSON.stringify(rules({ anonymous: true, name: 'trial', expires: '2027-01-31' })),
    );
    const { config } = loadConfig({ MCP_API_KEY: 'k' }, folder);
    expect(config.auth).toEqual([{ apiKey: 'k', agent: 'a', name: 'trial', expires: '2027-01-31' }]);
  });
});

describe('a rule for tokens', () => {
  it.each<[string, object]>([
    ['as little as it can say', oauth()],
    ['scopes', oauth({ scopes: { 'parley:write': 'b' }, requiredScopes: ['parley:read'] })],
    [
      'an audience that is no URL, and the URL',
      { ...oauth({ audience: 'api://x' }), server: { publicUrl: AUDIENCE } },
    ],
    ['an issuer on this machine', oauth({ issuer: 'http://127.0.0.1:8080/realms/x' })],
    [
      'claims',
      oauth({}, { a: { tenantId: { claim: 'org' }, identity: { claim: ['x', 'y'], field: 'username' } } }),
    ],
    [
      'two issuers of one audience',
      {
        auth: [OAUTH, { ...OAUTH, issuer: 'https://b.example.com' }].map((one) => ({
          agent: 'default',
          oauth: one,
        })),
      },
    ],
  ])('may have %s', (_, config) => {
    expect(errorsOf(config)).toEqual([]);
  });

  it.each<[string, object, string[]]>([
    [
      'no audience',
      { agents: { a: {} }, auth: [{ agent: 'a', oauth: { issuer: 'https://x.example' } }] },
      ['auth.0.oauth.audience'],
    ],
    ['an issuer without TLS', oauth({ issuer: 'http://id.example.com' }), ['auth.0.oauth.issuer']],
    ['an issuer with a query', oauth({ issuer: 'https://id.example.com?x=1' }), ['auth.0.oauth.issuer']],
    ['an issuer with a password', oauth({ issuer: 'https://me:pw@id.example.com' }), ['auth.0.oauth.issuer']],
    ['keys without TLS', oauth({ jwksUri: 'http://id.example.com/keys' }), ['auth.0.oauth.jwksUri']],
    [
      'introspection without TLS',
      oauth({ introspection: { clientId: 'a', clientSecret: 'b', endpoint: 'http://id.example.com/i' } }),
      ['auth.0.oauth.introspection.endpoint'],
    ],
    ['a shared secret for signatures', oauth({ algorithms: ['HS256'] }), ['auth.0.oauth.algorithms.0']],
    ['no signature', oauth({ algorithms: ['none'] }), ['auth.0.oauth.algorithms.0']],
    ['a scope that leads nowhere', oauth({ scopes: { x: 'ghost' } }), ['auth.0.oauth.scopes.x']],
    ['a scope with a quote', oauth({ requiredScopes: ['a"b'] }), ['auth.0.oauth.requiredScopes']],
    ['a scope whose place would change', oauth({ scopes: { x: 'b', '7': 'b' } }), ['auth.0.oauth.scopes']],
    ['an audience that is no URL', oauth({ audience: 'api://x' }), ['server.publicUrl']],
    [
      'a revocation list that nobody could write',
      oauth({ revocationList: true }),
      ['auth.0.oauth.revocationList'],
    ],
    [
      'the issuer of another rule',
      {
        auth: [
          { agent: 'default', oauth: OAUTH },
          { agent: 'default', oauth: OAUTH },
        ],
      },
      ['auth.1.oauth.issuer'],
    ],
    [
      'a URL that ends a quoted text',
      { ...oauth(), server: { publicUrl: 'https://x.example/", error="' } },
      ['server.publicUrl'],
    ],
  ])('cannot have %s', (_, config, paths) => {
    expect(errorsOf(config)).toEqual(paths);
  });
});

describe('an agent that goes by claims', () => {
  it.each<[string, object]>([
    ['a tenant', { tenantId: { claim: 'org' } }],
    ['a user', { identity: { claim: 'sub' } }],
  ])('for %s is led to by tokens alone', (_, a) => {
    const others = [
      { agent: 'a', apiKey: 'k' },
      { agent: 'a', apiKeyHash: newKey().hash },
      { agent: 'a', clientCertificate: { header: 'X-S', trustedProxies: ['10.0.0.1'], subjects: ['CN=a'] } },
      { agent: 'a', anonymous: true },
    ];
    expect(errorsOf({ agents: { a }, auth: others })).toEqual(others.map((__, at) => `auth.${at}.agent`));
    expect(errorsOf(oauth({}, { a, b: {} }))).toEqual([]);
  });
});

describe('other rules', () => {
  it.each<[string, object, string[]]>([
    ['a hash of another kind', { apiKeyHash: 'md5:abc' }, ['auth.0.apiKeyHash']],
    [
      'a proxy that is a name',
      { clientCertificate: { header: 'X-S', trustedProxies: ['proxy'], subjects: ['CN=a'] } },
      ['auth.0.clientCertificate.trustedProxies'],
    ],
    [
      'any proxy',
      { clientCertificate: { header: 'X-S', trustedProxies: [], subjects: ['CN=a'] } },
      ['auth.0.clientCertificate.trustedProxies'],
    ],
    ['a key twice, in clear and as a hash', { apiKey: 'k', apiKeyHash: newKey().hash }, ['auth.0']],
  ])('cannot have %s', (_, rule, paths) => {
    expect(errorsOf({ agents: { a: {} }, auth: [{ agent: 'a', ...rule }] })).toEqual(paths);
  });
});
