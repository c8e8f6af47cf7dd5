import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Agent,
  compileAgentDefinition,
  deriveAgent,
  type Principals,
  createPrincipals,
  refusals,
} from '#core';
import { createBoundClass } from '../compile/bound-class.fixture.js';
import { compileClass } from '../compile/compile-class.js';
import { compilePolicy } from '../compile/compile-policy.js';
import type { TenantScopeConfig } from '../compile/policy-config.js';
import type { ClassSchema, FieldSchema } from '../model/class-schema.js';
import { FieldNames, suggestNames } from '../model/field-names.js';
import { Policies } from '../model/policy.js';
import type { PolicyIssue } from '../model/policy-issue.js';
import { joinProjection } from '../where/requested-fields.js';
import { AgentScopes } from './agent-scope.js';
import { isOwnRow, tenantBinding, tenantConflict } from './tenant.js';

const agentOf = (tenantId: unknown, permissions: 'readonly' | 'admin' = 'readonly') =>
  new Agent({
    definition: compileAgentDefinition('x', { permissions }),
    principal: 'p',
    tenantId: tenantId as string,
  });
const scoped = createBoundClass('Post', { tenantScope: { field: 'org_id', bypass: ['admin'] } });

describe('a tenant that is not the tenantId of the agent', () => {
  const agentWith = (options: Partial<ConstructorParameters<typeof Agent>[0]>) =>
    new Agent({
      definition: compileAgentDefinition('x', { permissions: 'write' }),
      principal: 'p',
      ...options,
    });
  const scopedBy = (scope: Omit<TenantScopeConfig, 'field'>) =>
    createBoundClass('Post', { tenantScope: { field: 'orgId', ...scope } });
  const refusal = { code: 'access_denied', details: { kind: 'tenant_scope' } };

  it.each<[string, TenantScopeConfig['from'], unknown]>([
    ['a claim by its name', { claim: 'org' }, 'acme'],
    ['a claim whose name has dots', { claim: 'https://org.example/id' }, 7],
    ['a claim inside another', { claim: ['account', 'id'] }, 'inner'],
    ['a function of the agent', ({ principal, claims }) => `${principal} ${String(claims['org'])}`, 'p acme'],
  ])('is read from %s', (_, from, value) => {
    const claims = { org: 'acme', 'https://org.example/id': 7, account: { id: 'inner' } };
    const agent = agentWith({ claims, tenantId: 'not this' });
    expect(tenantBinding(agent, scopedBy({ from: from! }))).toEqual({ field: 'orgId', value });
  });

  it.each<[string, TenantScopeConfig['from']]>([
    ['a claim that is missing', { claim: 'nope' }],
    ['a claim of every object', { claim: 'constructor' }],
    ['a claim that is no scalar', { claim: 'account' }],
    ['a claim inside a text', { claim: ['org', 'length'] }],
    ['a function that answers nothing', () => undefined],
    ['a function that answers a promise', (() => Promise.resolve('acme')) as never],
    [
      'a function that throws',
      () => {
        throw new Error('secret detail');
      },
    ],
  ])('refuses the class for %s, whatever the tenantId is', (_, from) => {
    const agent = agentWith({ claims: { org: 'acme', account: { id: 1 } }, tenantId: 'acme' });
    const answer = tenantBinding(agent, scopedBy({ from: from! }));
    expect(answer).toMatchObject(refusal);
    expect(JSON.stringify(answer)).not.toContain('secret');
  });

  it.each<[string, TenantScopeConfig['bypass'], boolean]>([
    ['answers true', () => true, true],
    ['answers false', () => false, false],
    ['answers what is not true', (() => 'yes') as never, false],
    ['answers a promise', (() => Promise.resolve(true)) as never, false],
    ['is asked with the agent', ({ claims }) => claims['staff'] === true, true],
    [
      'throws',
      () => {
        throw new Error('no');
      },
      false,
    ],
  ])('is bypassed by a function only where it %s', (_, bypass, bypassed) => {
    const agent = agentWith({ claims: { staff: true } });
    const answer = tenantBinding(agent, scopedBy({ bypass: bypass! }));
    if (bypassed) expect(answer).toBeNull();
    else expect(answer).toMatchObject(refusal);
  });

  it('is never another one for a sub-agent, whatever a function answers', () => {
    const parent = agentWith({});
    const byDepth = scopedBy({ from: ({ depth }) => `tenant ${depth}` });
    expect(tenantBinding(parent, byDepth)).toEqual({ field: 'orgId', value: 'tenant 0' });
    expect(tenantBinding(deriveAgent(parent), byDepth)).toMatchObject(refusal);
    const bypassedBelow = scopedBy({ from: () => 'acme', bypass: ({ depth }) => depth > 0 });
    expect(tenantBinding(deriveAgent(parent), bypassedBelow)).toEqual({ field: 'orgId', value: 'acme' });
    const claims = { org: 'acme' };
    expect(tenantBinding(deriveAgent(agentWith({ claims })), scopedBy({ from: { claim: 'org' } }))).toEqual({
      field: 'orgId',
      value: 'acme',
    });
  });

  it.each<[string, object]>([
    ['from', { from: 'org' }],
    ['from', { from: { claims: 'org' } }],
    ['from', { from: { claim: [] } }],
    ['from', { from: { claim: 'a', other: 1 } }],
    ['bypass', { bypass: 'admin' }],
    ['field', { field: 'owner.orgId' }],
  ])('is refused as configuration where %s is %j', (member, scope) => {
    const issues: PolicyIssue[] = [];
    compileClass('Post', { tenantScope: { field: 'orgId', ...scope } }, issues);
    expect(issues).toEqual([
      { path: `policy.classes.Post.tenantScope.${member}`, message: expect.stringContaining('expected') },
    ]);
  });
});

describe('tenant scope', () => {
  it('binds a class to the tenant of the agent, under the wire name of the field', () => {
    expect(tenantBinding(agentOf('acme'), scoped)).toEqual({ field: 'orgId', value: 'acme' });
    expect(tenantBinding(agentOf(0), scoped)).toEqual({ field: 'orgId', value: 0 });
  });

  it.each([null, '', '  ', false, Number.NaN, { $ne: 1 }, ['acme']])('refuses the binding %j', (tenantId) => {
    expect(tenantBinding(agentOf(tenantId), scoped)).toMatchObject({
      code: 'access_denied',
      details: { kind: 'tenant_scope' },
    });
  });

  it('does not hold for a tier that bypasses it, nor for a class without scope', () => {
    expect(tenantBinding(agentOf(null, 'admin'), scoped)).toBeNull();
    expect(tenantBinding(agentOf(null), createBoundClass('Other', {}))).toBeNull();
  });

  const binding = { field: 'orgId', value: 'acme' };
  const names = new FieldNames(new Map([['tenant', 'orgId']]));
  it.each([
    ['the own tenant', { orgId: 'acme' }],
    ['the own tenant under another spelling', { org_id: 'acme' }],
    ['no tenant', { title: 'x' }],
    ['no constraint', undefined],
  ])('lets a caller name %s', (_, where) => {
    expect(tenantConflict(binding, where, names, 'Post')).toBeNull();
  });

  it.each([
    ['another tenant', { orgId: 'other' }],
    ['an operator', { orgId: { $ne: 'acme' } }],
    ['an operator that means the own tenant', { orgId: { $eq: 'acme' } }],
    ['null', { orgId: null }],
    ['two spellings, the second foreign', { org_id: 'acme', orgId: 'other' }],
    ['a foreign one by alias', { orgId: 'acme', tenant: 'other' }],
  ])('refuses %s as a conflict', (_, where) => {
    expect(tenantConflict(binding, where, names, 'Post')?.message).toContain('Tenant scope conflict');
  });

  it('takes no fetched row of another tenant for its own, nor one without any', () => {
    expect(isOwnRow(binding, { orgId: 'acme' })).toBe(true);
    expect(isOwnRow(binding, { orgId: 'other' })).toBe(false);
    expect(isOwnRow(binding, {})).toBe(false);
  });

  it('says of a foreign id what it says of a missing one, and to the audit alone which it was', () => {
    const [{ cause: foreign, ...answered }, { cause: missing, ...other }] = [
      refusals.notTenantsRows('Post', ['x'], 'foreign'),
      refusals.notTenantsRows('Post', ['x'], 'missing'),
    ];
    expect(answered).toEqual(other);
    expect([foreign, missing]).toEqual(['foreign', 'missing']);
    expect(refusals.notTenantsRows('Post', ['x', 'y']).message).toContain("under the id: 'x', 'y'");
  });
});

describe('the projection of an included class', () => {
  const fields = new Map<string, FieldSchema>(
    ['objectId', 'createdAt', 'updatedAt', 'ACL', 'name', 'bio', 'photo'].map((name) => [
      name,
      { type: 'String' },
    ]),
  );
  const schema: ClassSchema = { className: 'Author', fields, indexes: [], classLevelPermissions: null };

  it('is the join fields first', () => {
    const policy = createBoundClass('Author', {
      joinFields: ['name'],
      fields: ['name', 'bio'],
      largeFields: ['bio'],
    });
    expect(joinProjection(policy, schema)).toEqual({
      source: 'join_fields',
      fields: ['name'],
      dropped: ['bio'],
    });
  });

  it('is else the allowlist without large fields', () => {
    const policy = createBoundClass('Author', { fields: ['name', 'bio'], largeFields: ['bio'] });
    expect(joinProjection(policy, schema)).toEqual({
      source: 'allowlist_minus_large',
      fields: ['name'],
      dropped: ['bio'],
    });
  });

  it('is else every field without the large ones', () => {
    const policy = createBoundClass('Author', { largeFields: ['bio', 'photo'] });
    expect(joinProjection(policy, schema)).toEqual({
      source: 'field_map_minus_large',
      fields: ['name'],
      dropped: ['bio', 'photo'],
    });
  });

  it('is nothing when the class declares none of them', () => {
    expect(joinProjection(createBoundClass('Author', {}), schema)).toBeNull();
  });
});

describe('suggestions', () => {
  it('are at most three near names, nearest first', () => {
    expect(suggestNames('Sogn', ['Album', 'Song', 'Songs', 'Sign', 'Singer', 'X'])).toEqual(['Sign', 'Song']);
  });

  it.each([
    ['Pots', ['Post']],
    ['Users', ['_User']],
    ['className', ['class_name']],
    ['limt', ['limit']],
    ['Studnets', ['Student', 'Students']],
    ['Nope', []],
    ['filter', []],
  ])('of %s are %j', (name, near) => {
    const known = ['Song', 'Store', 'Post', '_User', 'class_name', 'limit', 'where', 'Student', 'Students'];
    expect(suggestNames(name, known).toSorted()).toEqual(near);
  });

  it('are none when nothing is near', () => {
    expect(suggestNames('Invoice', ['Album'])).toEqual([]);
  });

  /** Edits of one text into another, by the definition: swapped neighbours are one edit. */
  const edits = (a: string, b: string): number => {
    const table = Array.from({ length: a.length + 1 }, (_, i) =>
      Array.from({ length: b.length + 1 }, (__, j) => (i === 0 ? j : j === 0 ? i : 0)),
    );
    const at = (i: number, j: number) => table[i]?.[j] ?? Infinity;
    for (let i = 1; i <= a.length; i += 1)
      for (let j = 1; j <= b.length; j += 1) {
        const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
        const ways = [at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)];
        (table[i] as number[])[j] = Math.min(...ways, swapped ? at(i - 2, j - 2) + 1 : Infinity);
      }
    return at(a.length, b.length);
  };

  it('never leave out a candidate within the permitted edits, nor name another one', () => {
    const letters = fc.constantFrom('a', 'b', 'c', 'A', 'é', '\u0141', '!', '0');
    const names = fc.string({ unit: letters, maxLength: 12 });
    fc.assert(
      fc.property(names, names, (name, candidate) => {
        const [a, b] = [name.toLowerCase(), candidate.toLowerCase()];
        const isNear = edits(a, b) <= Math.max(1, Math.ceil(a.length / 4));
        expect(suggestNames(name, [candidate])).toEqual(isNear ? [candidate] : []);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('the spellings of a field', () => {
  const spelled = new FieldNames(new Map([['externalStatus', 'ExtStatus']]));

  it.each([
    ['its alias', 'externalStatus', 'ExtStatus'],
    ['its alias in snake case', 'external_status', 'ExtStatus'],
    ['the aliased column itself', 'ExtStatus', 'ExtStatus'],
    ['snake case', 'play_count', 'playCount'],
    ['a leading capital', 'PlayCount', 'playCount'],
    ['its own name', 'playCount', 'playCount'],
    ['a leading underscore', '_rperm', '_rperm'],
  ])('include %s', (_, written, wire) => {
    expect(spelled.wireName(written)).toBe(wire);
  });
});

describe('the access of callers with the rights of users', () => {
  const agent = agentOf('north');
  const names = ['a', 'b', 'c'];
  const fields = new Map(names.map((name): [string, FieldSchema] => [name, { type: 'String' }]));
  const classes = (protectedFields: Record<string, readonly string[]>) => {
    const note: ClassSchema = {
      className: 'Note',
      fields,
      indexes: [],
      classLevelPermissions: { find: { '*': true }, protectedFields },
    };
    return { get: (name: string) => (name === 'Note' ? note : undefined), classNames: () => ['Note'] };
  };
  const policies = new Policies(compilePolicy({ classes: { Note: { fields: ['a', 'b'] } } }).policy);
  const shortenText = (scopes: AgentScopes, schemas: ReturnType<typeof classes>, caller: Principals) => {
    const { readable, guarded } = scopes.of(schemas, agent, caller).access('Note');
    return { readable: [...(readable ?? [])], hidden: [...(guarded?.hidden ?? [])], perRow: guarded?.perRow };
  };
  const entities = ['*', 'authenticated', 'ada', 'role:editors', 'role:others', 'userField:owner'];
  const caller = fc
    .tuple(fc.constantFrom('ada', 'bob', null), fc.subarray(['editors', 'others']))
    .map(([userId, roles]) => createPrincipals(userId, roles));

  it('is separate for each, also after other callers of the same definition', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...entities), fc.subarray(names)),
        fc.array(caller, { minLength: 2, maxLength: 6 }),
        (lists, callers) => {
          const schemas = classes(lists);
          const scopes = new AgentScopes(policies);
          for (const one of callers)
            expect(shortenText(scopes, schemas, one)).toEqual(
              shortenText(new AgentScopes(policies), schemas, one),
            );
        },
      ),
    );
  });

  it('is one for all from whom the same columns are hidden on every row', () => {
    const scopes = new AgentScopes(policies);
    const schemas = classes({ '*': ['a', 'c'], 'role:editors': ['a'] });
    const access = (...roles: string[]) =>
      scopes.of(schemas, agent, createPrincipals('ada', roles)).access('Note');
    expect(access()).toBe(access('others'));
    expect(access('editors')).not.toBe(access());
    const perRow = classes({ '*': ['a', 'c'], 'userField:owner': ['a'] });
    const own = () => scopes.of(perRow, agent, createPrincipals('ada', [])).access('Note');
    expect(own()).not.toBe(own());
  });
});
