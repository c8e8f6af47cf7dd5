import { describe, expect, it } from 'vitest';
import { readDefaults } from '../schema/class-schema.js';
import { consoleErrors } from '../checks/operators-checks.js';
import { ConsoleOidcConfig } from './operators.js';
import { ServerSection } from './server.js';

const base = {
  agents: { boss: {}, guest: {} },
  auth: [
    { apiKey: 'k', agent: 'boss' },
    { anonymous: true as const, agent: 'guest' },
  ],
  server: readDefaults(ServerSection),
};
const errorsOf = (operators: readonly string[] | null, path = '/mcp') =>
  consoleErrors({
    ...base,
    server: { ...readDefaults(ServerSection), path },
    console: { operators, oidc: null },
  }).map((error) => error.path);

describe('the operators of the console', () => {
  it('may be agents that show a credential', () => {
    expect(errorsOf(['boss'])).toEqual([]);
    expect(errorsOf(null, '/console')).toEqual([]);
  });

  it('may not be an agent that needs none', () => {
    expect(errorsOf(['boss', 'guest'])).toEqual(['console.operators']);
  });

  it('may not be an agent that there is not', () => {
    expect(errorsOf(['nobody', 'toString'])).toEqual(['console.operators', 'console.operators']);
  });

  it.each(['/console', '/console/mcp'])('are not served where MCP is: %s', (path) => {
    expect(errorsOf(['boss'], path)).toEqual(['server.path']);
  });
});

describe('the console of an application', () => {
  const oidc = (redirectUri: string) => ({
    ...readDefaults(ConsoleOidcConfig),
    issuer: 'https://id.example',
    clientId: 'console',
    redirectUri,
  });
  const errorsOf = (path: string, redirectUri: string) =>
    consoleErrors(
      {
        ...base,
        server: { ...readDefaults(ServerSection), path },
        console: { operators: ['boss'], oidc: oidc(redirectUri) },
      },
      new Map(),
      true,
    );

  it('is below the path of MCP, whatever that is, and so is the address of its issuer', () => {
    for (const prefix of ['', '/api/v1'])
      expect(errorsOf('/mcp', `https://a.example${prefix}/mcp/console/session/oidc/callback`)).toEqual([]);
    expect(errorsOf('/', 'https://a.example/api/console/session/oidc/callback')).toEqual([]);
    expect(errorsOf('/console', 'https://a.example/console/console/session/oidc/callback')).toEqual([]);
    expect(errorsOf('/mcp', 'https://a.example/console/session/oidc/callback')).toEqual([
      {
        path: 'console.oidc.redirectUri',
        message: 'must end with the path /mcp/console/session/oidc/callback',
      },
    ]);
  });
});

describe('the sign-in of operators with an issuer', () => {
  const oauth = { issuer: 'https://id.example', audience: 'https://parley.example/mcp' };
  const rule = { claim: 'groups', equals: 'admins', agent: 'boss' };
  const given = {
    clientId: 'console',
    redirectUri: 'https://parley.example/console/session/oidc/callback',
    operators: [rule],
  };
  const pathsOf = (
    changed: object,
    {
      operators = ['boss'],
      agents = base.agents,
      auth = [{ agent: 'boss', oauth }] as readonly object[],
    } = {},
  ) =>
    consoleErrors({
      ...base,
      agents,
      auth: auth as never,
      console: { operators, oidc: { ...readDefaults(ConsoleOidcConfig), ...given, ...changed } },
    } as never).map((error) => error.path);

  it('takes the only issuer of auth, and makes nobody an operator without a rule', () => {
    expect(pathsOf({})).toEqual([]);
    expect(pathsOf({ operators: [] })).toEqual([]);
    expect(readDefaults(ConsoleOidcConfig).operators).toEqual([]);
  });

  it.each([
    ['console.oidc.issuer', { issuer: 'http://id.example' }],
    ['console.oidc.redirectUri', { redirectUri: 'http://parley.example/console/session/oidc/callback' }],
    ['console.oidc.redirectUri', { redirectUri: 'https://parley.example/x/console/session/oidc/callback' }],
    ['console.oidc.redirectUri', { redirectUri: 'https://parley.example/?/console/session/oidc/callback' }],
    ['console.oidc.operators.0.agent', { operators: [{ ...rule, agent: 'guest' }] }],
    ['console.oidc.operators.0.agent', { operators: [{ ...rule, agent: 'nobody' }] }],
  ])('refuses %s: %j', (path, changed) => {
    expect(pathsOf(changed)).toEqual([path]);
  });

  it('refuses an operator whose tenant is a claim of its caller, and no issuer or two', () => {
    const agents = { ...base.agents, boss: { tenantId: { claim: 'org' } } };
    expect(pathsOf({}, { agents })).toEqual(['console.oidc.operators.0.agent']);
    expect(pathsOf({}, { auth: [] })).toEqual(['console.oidc.issuer']);
    const other = { agent: 'boss', oauth: { ...oauth, issuer: 'https://other.example' } };
    expect(pathsOf({}, { auth: [{ agent: 'boss', oauth }, other] })).toEqual(['console.oidc.issuer']);
  });
});
