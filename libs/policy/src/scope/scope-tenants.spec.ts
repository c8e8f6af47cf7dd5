import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Agent,
  compileAgentDefinition,
  deriveAgent,
  findTenant,
  type Identity,
  isSameOwner,
  MASTER,
  sessionIdentity,
  sharesTenant,
  toOwner,
  withScopeTenants,
} from '#core';
import { compilePolicy } from '../compile/compile-policy.js';
import type { ClassConfig } from '../compile/policy-config.js';
import { Policies } from '../model/policy.js';
import { TenantsByPolicy } from './scope-tenants.js';

interface Caller {
  readonly tier: 'readonly' | 'write' | 'admin';
  readonly tenantId: string | null;
  readonly claims: Readonly<Record<string, string | undefined>>;
}

const isChief = ({ claims }: { readonly claims: Agent['claims'] }) => claims['role'] === 'chief';

const CLASSES = ['One', 'Two', 'Three'] as const;
const tenant = fc.constantFrom('acme', 'globex', undefined);
const caller: fc.Arbitrary<Caller> = fc.record({
  tier: fc.constantFrom('readonly', 'write', 'admin'),
  tenantId: fc.constantFrom('acme', 'globex', null, null),
  claims: fc.record({ org: tenant, region: tenant }),
});
const bypass = fc.subarray(['write', 'admin']);
const scope: fc.Arbitrary<ClassConfig['tenantScope']> = fc.oneof(
  fc.constant(null),
  fc.record({ field: fc.constant('org'), bypass }),
  fc.record({
    field: fc.constant('org'),
    from: fc.record({ claim: fc.constantFrom('org', 'region') }),
    bypass,
  }),
  fc.record({
    field: fc.constant('org'),
    from: fc.constant((agent: { readonly claims: Caller['claims'] }) => agent.claims['org']),
    bypass: fc.constantFrom(
      (agent: { readonly permissions: string }) => agent.permissions === 'admin',
      ['admin'],
    ),
  }) as fc.Arbitrary<ClassConfig['tenantScope']>,
);
const world = fc.record({ scopes: fc.tuple(scope, scope, scope), viewer: caller, requester: caller });

function admit(scopes: readonly ClassConfig['tenantScope'][]) {
  const classes = Object.fromEntries(CLASSES.map((name, at) => [name, { tenantScope: scopes[at] ?? null }]));
  const { policy, issues } = compilePolicy({ classes });
  expect(issues).toEqual([]);
  const tenants = new TenantsByPolicy(new Policies(policy));
  return ({ tier, tenantId, claims }: Caller) =>
    new Agent({
      definition: withScopeTenants(compileAgentDefinition('asked', { permissions: tier }), tenants),
      principal: 'ada',
      tenantId,
      claims: Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined)),
    });
}

/** By the words of the documentation: the tenant of a caller on a class; undefined: the scope does not apply to it. */
function tenantOn(declared: ClassConfig['tenantScope'], { tier, tenantId, claims }: Caller) {
  if (!declared) return undefined;
  const { from, bypass: by = [] } = declared;
  if (typeof by === 'function' ? tier === 'admin' : by.includes(tier)) return undefined;
  if (from === undefined) return tenantId;
  return (typeof from === 'function' ? claims['org'] : claims[String(from.claim)]) ?? null;
}

describe('what an owner does with a class', () => {
  it('is never seen by an agent of another tenant on it, or of none', () => {
    fc.assert(
      fc.property(world, fc.subarray([0, 1, 2], { minLength: 1 }), ({ scopes, viewer, requester }, asked) => {
        const make = admit(scopes);
        const names = asked.map((at) => CLASSES[at]!);
        if (!sharesTenant(make(viewer), toOwner(make(requester)), names)) return;
        expect(viewer.tenantId).toBe(requester.tenantId);
        for (const at of asked) {
          const own = tenantOn(scopes[at], viewer);
          if (own === undefined) continue;
          expect(own).not.toBeNull();
          // Of a requester that bypassed the scope there is no tenant, and nobody is of it.
          if (scopes[at]?.from !== undefined) expect(own).toBe(tenantOn(scopes[at], requester));
        }
      }),
      { numRuns: 500 },
    );
  });

  it('is never seen where no class of it is known, unless every scope says the same of both', () => {
    fc.assert(
      fc.property(world, ({ scopes, viewer, requester }) => {
        const make = admit(scopes);
        if (!sharesTenant(make(viewer), toOwner(make(requester)), [])) return;
        for (const declared of scopes) {
          const own = tenantOn(declared, viewer);
          if (declared?.from !== undefined && own !== undefined)
            expect(own).toBe(tenantOn(declared, requester) ?? null);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('is seen by everybody of its tenant', () => {
    fc.assert(
      fc.property(world, ({ scopes, viewer }) => {
        const make = admit(scopes);
        expect(sharesTenant(make(viewer), toOwner(make(viewer)), [])).toBe(true);
        for (const [at, name] of CLASSES.entries())
          expect(sharesTenant(make(viewer), toOwner(make(viewer)), [name])).toBe(
            tenantOn(scopes[at], viewer) !== null,
          );
      }),
    );
  });
});

describe('two callers of one name', () => {
  it('are one owner only with the same tenants, and bypassing the same scopes where a function decides it', () => {
    fc.assert(
      fc.property(world, ({ scopes, viewer, requester }) => {
        const make = admit(scopes);
        const listTenants = (one: Caller) => [
          one.tenantId,
          ...scopes.map((declared) => {
            const own = tenantOn(declared, one);
            return own === undefined && typeof declared?.bypass === 'function' ? 'all' : (own ?? null);
          }),
        ];
        const [isAlike, other] = [listTenants(viewer), listTenants(requester)];
        const fromClaims = (values: readonly unknown[]) =>
          JSON.stringify(values.filter((_, at) => at === 0 || scopes[at - 1]?.from !== undefined));
        expect(isSameOwner(toOwner(make(viewer)), toOwner(make(requester)))).toBe(
          fromClaims(isAlike) === fromClaims(other),
        );
      }),
    );
  });

  it('are one owner only with the same rights: those of one user or role, and the same values in filters', () => {
    const claims = fc.record({ org: tenant, sub: fc.constantFrom('ada', 'bob', undefined) });
    const identity = fc.constantFrom<Identity>(
      MASTER,
      { kind: 'aclUser', userId: 'ada' },
      { kind: 'aclUser', userId: 'bob' },
      { kind: 'aclRole', role: 'ada' },
    );
    const named = fc.constantFrom('user', 'claims.org', 'claims.sub', null);
    const filter = fc.record({
      option: fc.constantFrom('filters', 'canonicalFilter', 'agent', 'parent'),
      named,
    });
    const callers = fc.tuple(fc.record({ claims, identity }), fc.record({ claims, identity }));
    fc.assert(
      fc.property(filter, callers, ({ option, named: value }, [one, other]) => {
        const where = value === null ? {} : { $or: [{ org: 'acme' }, { org: { $in: [{ $agent: value }] } }] };
        const declared = option === 'filters' || option === 'canonicalFilter' ? { [option]: where } : {};
        const { policy, issues } = compilePolicy({ classes: { One: declared } });
        expect(issues).toEqual([]);
        const filters = { One: where };
        const options = option === 'agent' || option === 'parent' ? { filters } : {};
        const tenants = new TenantsByPolicy(new Policies(policy));
        const root = withScopeTenants(compileAgentDefinition('asked', options), tenants);
        const make = (caller: typeof one) => {
          const agent = new Agent({
            definition: root,
            principal: 'backend',
            identity: caller.identity,
            claims: Object.fromEntries(
              Object.entries(caller.claims).filter(([, held]) => held !== undefined),
            ),
          });
          return toOwner(option === 'parent' ? deriveAgent(agent) : agent);
        };
        const readAs = (caller: typeof one) => {
          const isUser = caller.identity.kind === 'aclUser';
          const read = {
            user: isUser ? null : caller.claims.sub,
            'claims.org': caller.claims.org,
            'claims.sub': caller.claims.sub,
          };
          return JSON.stringify([caller.identity, (value && read[value]) ?? null]);
        };
        expect(isSameOwner(make(one), make(other))).toBe(readAs(one) === readAs(other));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['the filters of an agent', { Letter: () => ({}) }, {}],
    ['a bypass of a tenant scope', {}, { tenantScope: { field: 'org', bypass: isChief } }],
    [
      'a bypass of a scope with a claim',
      {},
      { tenantScope: { field: 'org', from: { claim: 'org' }, bypass: isChief } },
    ],
  ])('are two owners where a function decides for each of them: %s', (_, filters, declared) => {
    const { policy, issues } = compilePolicy({ classes: { Letter: declared as ClassConfig } });
    expect(issues).toEqual([]);
    const tenants = new TenantsByPolicy(new Policies(policy));
    const definition = withScopeTenants(compileAgentDefinition('asked', { filters }), tenants);
    const make = (claims: Agent['claims']) => new Agent({ definition, principal: 'backend', claims });
    const [chief, clerk, renewed] = [
      { role: 'chief' },
      { role: 'clerk' },
      { iat: 2, jti: 'b', role: 'chief' },
    ].map(make);
    expect(isSameOwner(toOwner(chief!), toOwner(clerk!))).toBe(false);
    expect(isSameOwner(toOwner(chief!), toOwner(renewed!))).toBe(true);
    expect(isSameOwner(toOwner(deriveAgent(chief!)), toOwner(deriveAgent(clerk!)))).toBe(false);
  });

  it('are two owners with two sessions, where the principal is not the user of the session', () => {
    const definition = compileAgentDefinition('asked', {});
    const make = (token: string, more: object = {}) =>
      new Agent({ definition, principal: 'backend', identity: sessionIdentity(token), ...more });
    const chosen = { user: 'backend' };
    expect(isSameOwner(toOwner(make('r:a', chosen)), toOwner(make('r:b', chosen)))).toBe(false);
    expect(isSameOwner(toOwner(make('r:a', chosen)), toOwner(make('r:a', chosen)))).toBe(true);
    expect(JSON.stringify(toOwner(make('r:secret', chosen)))).not.toContain('r:secret');
    // As rules of `auth` name the caller of a session, and as another one of the same person.
    expect(isSameOwner(toOwner(make('r:a')), toOwner(make('r:b')))).toBe(true);
    const root = new Agent({ definition, principal: 'backend' });
    const [one, other] = ['r:a', 'r:b'].map((session) => deriveAgent(root, { identity: { session } }));
    expect(isSameOwner(toOwner(one!), toOwner(other!))).toBe(false);
  });

  it('belong to one tenant, whichever scope says so', () => {
    const make = admit([{ field: 'org', from: { claim: 'org' } }, { field: 'org' }, null]);
    const of = (tenantId: string | null, org?: string) =>
      findTenant(make({ tier: 'readonly', tenantId, claims: { org } }));
    expect([of(null), of(null, 'acme'), of('acme'), of('acme', 'acme')]).toEqual([
      null,
      'acme',
      'acme',
      'acme',
    ]);
    expect(of('acme', 'globex')).toBe('["acme","globex"]');
  });
});
