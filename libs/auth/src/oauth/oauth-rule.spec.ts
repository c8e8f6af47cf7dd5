import type { IncomingMessage, ServerResponse } from 'node:http';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { compileAgentDefinition, MASTER, Unauthorized } from '#core';
import type { UserField } from '#data';
import { ProcessVersionedStore } from '#state';
import { AUDIENCE, outage, type SmallIssuer, startIssuer } from '../contracts/index.js';
import { AuthenticationUnavailable, InsufficientScope, InvalidToken } from '../errors.js';
import { RuleAuthenticator } from '../authenticator.js';
import { toPrincipal } from './claims.js';
import { Grant, type GrantOptions, type ScopedGrantsOptions } from './grants.js';
import { type OAuthIssuer, oauthRule } from './oauth-rule.js';
import { RevocationList, revocationName } from './revocations.js';

const USERS = {
  findUser(field: UserField, value: string): Promise<string | null> {
    const known = { objectId: { u1: 'u1' }, username: { ada: 'u1' }, email: { 'ada@example.com': 'u1' } };
    return Promise.resolve((known[field] as Record<string, string>)[value] ?? null);
  },
};

const definitions = {
  reader: compileAgentDefinition('reader', { tenantId: 'of the definition' }),
  writer: compileAgentDefinition('writer', { permissions: 'write' }),
  admin: compileAgentDefinition('admin', { permissions: 'admin' }),
};
const findGrant = (name: keyof typeof definitions, options: Partial<GrantOptions> = {}) =>
  new Grant({ definition: definitions[name], identity: MASTER, users: USERS, ...options });
const GRANTS: ScopedGrantsOptions = {
  required: [],
  base: findGrant('reader'),
  steps: [
    ['data:write', findGrant('writer')],
    ['data:admin', findGrant('admin')],
  ],
};

let issuer: SmallIssuer;
beforeAll(async () => {
  issuer = await startIssuer();
});
afterAll(() => issuer.close());
afterEach(() => issuer.instead.clear());

const createRule = (
  grants: Partial<ScopedGrantsOptions> = {},
  options: Partial<OAuthIssuer> = {},
  revocations: RevocationList[] = [],
) =>
  oauthRule(
    { issuer: issuer.issuer, audience: AUDIENCE, ...options },
    { grants: { ...GRANTS, ...grants }, revocations },
  );
const presentToken = async (claims: Record<string, unknown>) => ({
  headers: { authorization: `Bearer ${await issuer.token(claims)}` },
  remoteAddress: undefined,
});

describe('the scopes of a token', () => {
  it.each<[unknown, string]>([
    [undefined, 'reader'],
    ['', 'reader'],
    ['openid profile', 'reader'],
    ['data:write', 'writer'],
    ['openid data:write', 'writer'],
    [['data:write'], 'writer'],
    ['data:admin data:write', 'admin'],
    ['data:write data:admin', 'admin'],
    ['data:adminn', 'reader'],
    ['DATA:ADMIN', 'reader'],
    [{ 'data:admin': true }, 'reader'],
    [7, 'reader'],
  ])('lead to the last agent that they name: %j to %s', async (scope, name) => {
    expect((await createRule().recognise(await presentToken({ scope })))?.definition.name).toBe(name);
  });

  it('are also read where other issuers put them', async () => {
    expect((await createRule().recognise(await presentToken({ scp: ['data:admin'] })))?.definition.name).toBe(
      'admin',
    );
    const roles = createRule({}, { scopeClaim: ['realm_access', 'roles'] });
    const claims = { realm_access: { roles: ['data:write'] }, scope: 'data:admin' };
    expect((await roles.recognise(await presentToken(claims)))?.definition.name).toBe('writer');
  });

  it('never lead higher than to the last one held', async () => {
    await fc.assert(
      fc.asyncProperty(fc.subarray(['a', 'b', 'data:write', 'data:admin', 'z']), async (scopes) => {
        const agent = await createRule().recognise(await presentToken({ scope: scopes.join(' ') }));
        const most = scopes.includes('data:admin') ? 'admin' : 'writer';
        const expected = scopes.some((scope) => scope.startsWith('data:')) ? most : 'reader';
        expect(agent?.definition.name).toBe(expected);
      }),
      { numRuns: 30 },
    );
  });

  it('that are required are all named to a caller who lacks one', async () => {
    const rule = createRule({ required: ['data:read', 'data:use'] });
    const error = await rule
      .recognise(await presentToken({ scope: 'data:read data:admin' }))
      .catch((one) => one);
    expect(error).toBeInstanceOf(InsufficientScope);
    expect((error as InsufficientScope).scopes).toEqual(['data:read', 'data:use']);
  });

  it('that would lead further are named with those already held', async () => {
    const rule = createRule({ required: ['data:read'] });
    const above = async (scope: string) => {
      const agent = await rule.recognise(await presentToken({ scope }));
      return (
        agent && rule.stepsAbove(agent).map(({ scopes, definition }) => [definition.name, scopes.join(' ')])
      );
    };
    expect(await above('openid data:read')).toEqual([
      ['writer', 'data:read data:write'],
      ['admin', 'data:read data:admin'],
    ]);
    expect(await above('data:read data:write')).toEqual([['admin', 'data:read data:write data:admin']]);
    expect(await above('data:read data:admin')).toEqual([]);
  });
});

describe('the tenant', () => {
  const rule = (required?: boolean) =>
    createRule({
      base: findGrant('writer', { tenant: { claim: 'org_id', ...(required !== undefined && { required }) } }),
    });

  it.each([['acme', 'acme'] as const, [7, 7] as const, [0, 0] as const])(
    'is the claim: %j',
    async (org, tenant) => {
      expect((await rule().recognise(await presentToken({ org_id: org })))?.tenantId).toBe(tenant);
    },
  );

  it.each([undefined, null, '', ' ', true, ['acme'], { id: 'acme' }])(
    'cannot be missing or of another kind: %j',
    async (org) => {
      await expect(rule().recognise(await presentToken({ org_id: org }))).rejects.toBeInstanceOf(
        InvalidToken,
      );
    },
  );

  it('is none for a caller without one, where the agent permits it, and never somebody else’s', async () => {
    expect((await rule(false).recognise(await presentToken({})))?.tenantId).toBeNull();
    await expect(rule(false).recognise(await presentToken({ org_id: [] }))).rejects.toBeInstanceOf(
      InvalidToken,
    );
  });

  it('is looked for under a name with dots, and inside other claims', async () => {
    const named = createRule({
      base: findGrant('writer', { tenant: { claim: 'https://acme.example/org.id' } }),
    });
    const inside = createRule({ base: findGrant('writer', { tenant: { claim: ['org', 'id'] } }) });
    expect(
      (await named.recognise(await presentToken({ 'https://acme.example/org.id': 'a' })))?.tenantId,
    ).toBe('a');
    expect((await inside.recognise(await presentToken({ org: { id: 'b' } })))?.tenantId).toBe('b');
    await expect(inside.recognise(await presentToken({ org: 'b' }))).rejects.toBeInstanceOf(InvalidToken);
  });
});

describe('the user', () => {
  const as = (field: UserField, claim = 'who') =>
    createRule({ base: findGrant('reader', { identity: { claim, field } }) });

  it.each<[UserField, Record<string, unknown>]>([
    ['objectId', { who: 'u1' }],
    ['username', { who: 'ada' }],
    ['email', { who: 'ada@example.com', email_verified: true }],
  ])('is found by %s', async (field, claims) => {
    expect((await as(field).recognise(await presentToken(claims)))?.identity).toEqual({
      kind: 'aclUser',
      userId: 'u1',
    });
  });

  it.each<[string, UserField, Record<string, unknown>]>([
    ['that does not exist', 'objectId', { who: 'u2' }],
    ['that is no text', 'username', { who: { $ne: null } }],
    ['that is a role', 'objectId', { who: 'role:admins' }],
    ['by an address nobody verified', 'email', { who: 'ada@example.com' }],
    ['by an address that says it is verified', 'email', { who: 'ada@example.com', email_verified: 'true' }],
    ['that the token does not name', 'username', {}],
  ])('is refused %s', async (_, field, claims) => {
    await expect(as(field).recognise(await presentToken(claims))).rejects.toBeInstanceOf(InvalidToken);
  });
});

describe('several issuers', () => {
  it('are distinguished by their own keys, and their subjects are different callers', async () => {
    const other = await startIssuer();
    try {
      const grants = { grants: GRANTS };
      const rules = [issuer, other].map((one) =>
        oauthRule({ issuer: one.issuer, audience: AUDIENCE }, grants),
      );
      const authenticator = new RuleAuthenticator(rules);
      const ask = (token: string) =>
        authenticator.authenticate({
          headers: { authorization: `Bearer ${token}` },
          remoteAddress: undefined,
        });
      const [first, second] = [await ask(await issuer.token()), await ask(await other.token())];
      expect([first.principal, second.principal]).toEqual([
        `oauth:${issuer.issuer}|ada`,
        `oauth:${other.issuer}|ada`,
      ]);
      // A long token is one of its issuer, and text that is far too long is nobody's.
      await expect(ask(await other.token({ filler: 'x'.repeat(9_000) }))).rejects.toBeInstanceOf(
        InvalidToken,
      );
      await expect(ask('x'.repeat(20_000))).rejects.toBeInstanceOf(Unauthorized);
      // One issuer speaking in the name of the other.
      const claims = { iss: issuer.issuer };
      await expect(ask(await other.token(claims))).rejects.toBeInstanceOf(InvalidToken);
    } finally {
      await other.close();
    }
  });
});

describe('the principal', () => {
  it('of two callers, two subjects or two issuers is never the same', () => {
    const issuers = fc.constantFrom('https://a', 'https://a|b', 'https://a|client:b', 'https://b');
    const subjects = fc.string({ minLength: 1, maxLength: 20 });
    const caller = fc.tuple(issuers, fc.constantFrom('sub', 'client_id'), subjects);
    fc.assert(
      fc.property(caller, caller, ([i1, c1, s1], [i2, c2, s2]) => {
        const same = i1 === i2 && c1 === c2 && s1 === s2;
        expect(toPrincipal(i1, { [c1]: s1 }) === toPrincipal(i2, { [c2]: s2 })).toBe(same);
      }),
    );
  });
});

describe('revocation', () => {
  const introspection = { clientId: 'parley', clientSecret: 's:e cret', cache: 0 };
  const answers = (body: object, status = 200) =>
    issuer.instead.set('/introspect', (_: IncomingMessage, response: ServerResponse) => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    });

  it('is asked of the issuer, with the credentials of this service', async () => {
    let authorization: string | undefined;
    issuer.instead.set('/introspect', (request, response) => {
      authorization = request.headers.authorization;
      response.end('{"active":true}');
    });
    expect(await createRule({}, { introspection }).recognise(await presentToken({}))).not.toBeNull();
    const sent = Buffer.from(authorization?.split(' ')[1] ?? '', 'base64').toString();
    expect(sent).toBe('parley:s%3Ae%20cret');
  });

  it.each<[string, object]>([
    ['no', { active: false }],
    ['nothing', {}],
    ['a text that says yes', { active: 'true' }],
    ['yes of another subject', { active: true, sub: 'bob' }],
  ])('is everything but a yes: %s', async (_, body) => {
    answers(body);
    await expect(createRule({}, { introspection }).recognise(await presentToken({}))).rejects.toBeInstanceOf(
      InvalidToken,
    );
  });

  it('that cannot be looked up admits nobody', async () => {
    const rule = createRule({}, { introspection });
    answers({ active: true }, 500);
    await expect(rule.recognise(await presentToken({}))).rejects.toBeInstanceOf(AuthenticationUnavailable);
    outage(issuer);
    await expect(rule.recognise(await presentToken({}))).rejects.toBeInstanceOf(AuthenticationUnavailable);
  });

  it('holds for a token that was verified and accepted before', async () => {
    const rule = createRule({}, { introspection });
    const credentials = await presentToken({});
    answers({ active: true });
    expect(await rule.recognise(credentials)).not.toBeNull();
    answers({ active: false });
    await expect(rule.recognise(credentials)).rejects.toBeInstanceOf(InvalidToken);
  });

  it('is asked once for many calls within the time a yes is believed', async () => {
    const rule = createRule({}, { introspection: { ...introspection, cache: 300 } });
    const credentials = await presentToken({});
    let asked = 0;
    issuer.instead.set('/introspect', (_, response) => {
      asked += 1;
      response.end('{"active":true}');
    });
    for (let at = 0; at < 5; at++) await rule.recognise(credentials);
    expect(asked).toBe(1);
  });

  const now = Math.floor(Date.now() / 1000);

  it.each([
    ['sub', 'ada'],
    ['jti', 'token-1'],
    ['client', 'host'],
  ] as const)('by an operator takes tokens back by %s that were issued before', async (by, value) => {
    const store = new ProcessVersionedStore();
    const rule = createRule({}, {}, [new RevocationList(issuer.issuer, store, 30)]);
    const claims = { jti: 'token-1', client_id: 'host' };
    expect(await rule.recognise(await presentToken(claims))).not.toBeNull();
    await store.create(revocationName(issuer.issuer, by, value), { before: now - 120 }, 60_000);
    expect(await rule.recognise(await presentToken(claims))).not.toBeNull();
    await expect(rule.recognise(await presentToken({ ...claims, iat: now - 200 }))).rejects.toBeInstanceOf(
      InvalidToken,
    );
    await expect(rule.recognise(await presentToken({ ...claims, iat: undefined }))).rejects.toBeInstanceOf(
      InvalidToken,
    );
  });

  it('by an operator is of one issuer’s subjects alone', () => {
    const name = revocationName('https://a', 'sub', 'ada');
    expect(name).not.toBe(revocationName('https://b', 'sub', 'ada'));
    expect(name).not.toBe(revocationName('https://a', 'client', 'ada'));
  });
});
