import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  Agent,
  type AgentOptions,
  compileAgentDefinition,
  deriveAgent,
  MASTER_PRINCIPALS,
  createPrincipals,
  Refused,
} from '#core';
import { createSchema, createSchemas } from '../compile/bound-class.fixture.js';
import { bindPolicy } from '../compile/bind-policy.js';
import { compilePolicy, constraintIssue } from '../compile/compile-policy.js';
import type { ClassConfig } from '../compile/policy-config.js';
import type { ClassSchema, FieldSchema, FieldType } from '../model/class-schema.js';
import { Policies } from '../model/policy.js';
import type { Where } from '../model/where.js';
import { AgentScopes } from './agent-scope.js';
import { type TenantBinding, tenantBinding, tenantWhere } from './tenant.js';

const POST = createSchema('Post', 'owner', 'region', 'state');
const withOwner = (type: 'Pointer' | 'Date'): ClassSchema => ({
  ...POST,
  fields: new Map([...POST.fields, ['owner', type === 'Date' ? { type } : { type, targetClass: '_User' }]]),
});
const agentWith = (options: Partial<AgentOptions>) =>
  new Agent({ definition: compileAgentDefinition('x'), principal: 'key:1', ...options });

function findScope(config: ClassConfig, agent: Agent, schema = POST, userId: string | null = null) {
  const { policy, issues } = compilePolicy({ classes: { Post: config } });
  expect(issues).toEqual([]);
  const scopes = new AgentScopes(new Policies(policy));
  return scopes.of(
    createSchemas(schema),
    agent,
    userId === null ? MASTER_PRINCIPALS : createPrincipals(userId, []),
  );
}

const filterOf = (config: ClassConfig, agent: Agent, schema?: ClassSchema, userId?: string | null) =>
  findScope(config, agent, schema, userId).agentFilter(agent, 'Post');

async function refusalOf(work: Promise<unknown>) {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return error instanceof Refused ? error.refusal : error;
}

const OWN = { filters: { owner: { $agent: 'user' } } };

describe('a value of the agent', () => {
  it.each<[string, string, Partial<AgentOptions>, unknown]>([
    ['the subject of a token', 'user', { claims: { sub: 'ada' }, user: 'other' }, 'ada'],
    ['whom an application names', 'user', { user: 'ada' }, 'ada'],
    ['its tenant', 'tenant', { tenantId: 7 }, 7],
    ['a claim', 'claims.org', { claims: { org: 'acme' } }, 'acme'],
    ['a claim whose name has dots', 'claims.https://x.y/org', { claims: { 'https://x.y/org': true } }, true],
    ['a claim inside another', 'claims.account.id', { claims: { account: { id: 'a1' } } }, 'a1'],
  ])('is %s', async (_, name, options, value) => {
    const filters = { owner: { $agent: name } };
    const type = { string: 'String', number: 'Number', boolean: 'Boolean' }[
      typeof value as 'string'
    ] as FieldType;
    const schema = { ...POST, fields: new Map([...POST.fields, ['owner', { type }] as const]) };
    expect(await filterOf({ filters }, agentWith(options), schema)).toEqual({ owner: value });
  });

  it('is the Parse user of the identity, and never another one', async () => {
    const own = agentWith({
      identity: { kind: 'aclUser', userId: 'ada' },
      claims: { sub: 'eve' },
      user: 'eve',
    });
    expect(await filterOf(OWN, own, POST, 'ada')).toEqual({ owner: 'ada' });
    const unknown = agentWith({ identity: { kind: 'sessionToken', token: 't' }, claims: { sub: 'eve' } });
    expect(await refusalOf(filterOf(OWN, unknown))).toMatchObject({ details: { kind: 'agent_value' } });
  });

  it.each<[string, string, Partial<AgentOptions>]>([
    ['no user', 'user', {}],
    ['a blank one', 'user', { user: '  ' }],
    ['no tenant', 'tenant', {}],
    ['no claim', 'claims.org', { claims: { other: 1 } }],
    ['a claim of every object', 'claims.constructor', {}],
    ['an object', 'claims.org', { claims: { org: { $ne: 1 } } }],
    ['a list', 'claims.org', { claims: { org: ['acme'] } }],
    ['a number that is none', 'claims.org', { claims: { org: Number.NaN } }],
    ['null', 'claims.org', { claims: { org: null } }],
  ])('refuses the call where the agent has %s, and says which to the log alone', async (_, name, options) => {
    const refusal = await refusalOf(filterOf({ filters: { owner: { $agent: name } } }, agentWith(options)));
    expect(refusal).toMatchObject({
      code: 'access_denied',
      gate: 'agent_filter',
      details: { kind: 'agent_value' },
      cause: expect.stringContaining(name),
    });
    expect((refusal as { message: string }).message).not.toContain(name);
  });

  it('stands in every place where a value is compared, and in the filters of agents', async () => {
    const claims = { sub: 'ada', region: 'eu' };
    const filters = {
      $or: [
        { region: { $in: [{ $agent: 'claims.region' }, 'all'] } },
        { state: { $ne: { $agent: 'user' } } },
      ],
      owner: { $inQuery: { className: 'Post', where: { owner: { $agent: 'user' } } } },
    };
    const definition = compileAgentDefinition('x', {
      filters: { Post: { state: { $eq: { $agent: 'user' } } } },
    });
    expect(await filterOf({ filters }, agentWith({ claims, definition }))).toEqual({
      $and: [
        {
          $or: [{ region: { $in: ['eu', 'all'] } }, { state: { $ne: 'ada' } }],
          owner: { $inQuery: { className: 'Post', where: { owner: 'ada' } } },
        },
        { state: { $eq: 'ada' } },
      ],
    });
    const view = { canonicalFilter: { owner: { $agent: 'user' } } };
    const agent = agentWith({ claims });
    expect(findScope(view, agent).canonicalFilter(agent, 'Post')).toEqual({ owner: 'ada' });
  });

  it('is a pointer where the column is one, and never one to another class', async () => {
    const schema = withOwner('Pointer');
    const pointer = (objectId: string) => ({ __type: 'Pointer', className: '_User', objectId });
    expect(await filterOf(OWN, agentWith({ user: 'ada' }), schema)).toEqual({ owner: pointer('ada') });
    expect(await filterOf(OWN, agentWith({ user: 'Secret$x1' }), schema)).toEqual({
      owner: pointer('Secret$x1'),
    });
    const typed = { filters: { owner: { ...pointer(''), objectId: { $agent: 'user' } } } };
    expect(await filterOf(typed, agentWith({ user: 'ada' }), schema)).toEqual({ owner: pointer('ada') });
  });

  /** Columns that read texts in more than one way. */
  const PLAIN: ClassSchema = {
    ...POST,
    storage: 'plain',
    fields: new Map<string, FieldSchema>([
      ...POST.fields,
      ['owner', { type: 'Pointer', targetClass: 'Shop' }],
      ['owners', { type: 'Array', targetClass: 'Shop' }],
      ['number', { type: 'Number' }],
      [
        'inside',
        {
          type: 'Object',
          members: new Map<string, FieldSchema>([
            ['owner', { type: 'Pointer', targetClass: 'Shop' }],
            ['number', { type: 'Number' }],
          ]),
        },
      ],
    ]),
  };
  const mark = { $agent: 'tenant' };
  const REFERENCES: [string, Where][] = [
    ['owner', { owner: mark }],
    ['owner', { owner: { $eq: mark } }],
    ['owners', { owners: mark }],
    ['inside.owner', { 'inside.owner': mark }],
    ['inside.owner', { inside: { owner: { $eq: mark } } }],
  ];
  const NUMBERS: [string, Where][] = [
    ['number', { number: mark }],
    ['number', { number: { $ne: mark } }],
    ['inside.number', { inside: { number: { $gte: mark } } }],
    ['inside.number', { $nor: [{ 'inside.number': { $in: [mark] } }] }],
  ];
  const scopedBy = (field: string): ClassConfig => ({
    storage: 'plain',
    tenantScope: { field },
    properties: { ...(field === 'owner' && { owner: { type: 'Pointer', targetClass: 'Shop' } }) },
  });
  const bindingOf = (field: string, tenantId: string) => {
    const agent = agentWith({ tenantId });
    return tenantBinding(agent, findScope(scopedBy(field), agent, PLAIN).classPolicy('Post'));
  };

  it('is one id of the class that a plain column refers to, whatever its text looks like', async () => {
    const texts = fc.oneof(
      fc.constantFrom('Shop$a', 'Shop$Shop$a', '_User$a', 'a$b', '{"$ne":null}'),
      fc.string({ minLength: 1 }).filter((text) => text.trim() !== ''),
    );
    await fc.assert(
      fc.asyncProperty(texts, async (tenantId) => {
        const id = { __type: 'Pointer', className: 'Shop', objectId: tenantId };
        for (const [path, filters] of REFERENCES) {
          const found = await filterOf({ storage: 'plain', filters }, agentWith({ tenantId }), PLAIN);
          const condition = found?.[path];
          expect([id, { $eq: id }]).toContainEqual(condition);
        }
        expect(tenantWhere(bindingOf('owner', tenantId) as TenantBinding)).toEqual({ owner: id });
      }),
      { numRuns: 40 },
    );
  });

  it('is a number of a plain column in the one spelling of that number', async () => {
    const spellings = fc
      .oneof(fc.integer(), fc.constantFrom(0, -0, 1, 1.5, 1e21))
      .chain((number) =>
        fc.constantFrom(
          `${number}.0`,
          `0${number}`,
          `+${number}`,
          ` ${number}`,
          `${number} `,
          number.toExponential(),
          `${number}e0`,
          `${number}E0`,
          '-0',
          '0x1',
          '1_000',
          'Infinity',
          '.5',
        ),
      )
      .filter((text) => !/^-?[1-9]\d*$/.test(text));
    const refused = { gate: 'agent_filter', details: { kind: 'agent_value' } };
    await fc.assert(
      fc.asyncProperty(spellings, async (tenantId) => {
        for (const [, filters] of NUMBERS) {
          const agent = agentWith({ tenantId });
          expect(await refusalOf(filterOf({ storage: 'plain', filters }, agent, PLAIN))).toMatchObject(
            refused,
          );
        }
        expect(bindingOf('number', tenantId)).toMatchObject({ details: { kind: 'tenant_scope' } });
      }),
      { numRuns: 40 },
    );
    for (const tenantId of ['1', '-7', '0', '1.5', '12345678901234567890']) {
      const found = filterOf({ storage: 'plain', filters: { number: mark } }, agentWith({ tenantId }), PLAIN);
      expect(await found).toEqual({ number: tenantId });
      expect(bindingOf('number', tenantId)).toMatchObject({ value: tenantId });
    }
  });

  it('is data: whatever text a caller brings is compared as it is', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 1 }).filter((text) => text.trim() !== ''),
        async (user) => {
          expect(await filterOf(OWN, agentWith({ user }))).toEqual({ owner: user });
          expect(await filterOf(OWN, agentWith({ claims: { sub: user } }))).toEqual({ owner: user });
        },
      ),
    );
  });

  it('never lets a value of another kind into the constraint', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything({ withNullPrototype: true }), async (value) => {
        const agent = agentWith({ claims: { org: value } });
        const found = await refusalOf(filterOf({ filters: { owner: { $agent: 'claims.org' } } }, agent));
        const scalar = ['string', 'number', 'boolean'].includes(typeof value);
        if (!scalar) expect(found).toMatchObject({ details: { kind: 'agent_value' } });
      }),
    );
  });

  it('refuses a call where its column cannot be compared with it', async () => {
    const refusal = await refusalOf(filterOf(OWN, agentWith({ user: 'no date' }), withOwner('Date')));
    expect(refusal).toMatchObject({ gate: 'agent_filter', code: 'access_denied' });
  });

  it.each<[string, Where, RegExp]>([
    ['an unknown name', { owner: { $agent: 'users' } }, /takes user, tenant or claims\.NAME/],
    ['no name of a claim', { owner: { $agent: 'claims.' } }, /claims\.NAME/],
    ['a name that is no text', { owner: { $agent: ['user'] } }, /claims\.NAME/],
    ['a pattern', { owner: { $regex: { $agent: 'user' } } }, /./],
    ['another operator beside it', { owner: { $agent: 'user', $exists: true } }, /\$agent/],
    ['the place of a field', { $agent: 'user' }, /\$agent/],
    ['the inside of a value', { owner: [{ $agent: 'user' }] }, /\$agent/],
    ['a text search', { $text: { $search: { $agent: 'user' } } }, /./],
  ])('is no configuration with %s', (_, constraint, line) => {
    expect(constraintIssue(constraint, 'Post')).toMatch(line);
  });

  it('never comes from the caller: in a query it is an unknown operator', async () => {
    expect(constraintIssue({ owner: { $agent: 'user' } }, 'Post')).toBeNull();
    const { translateWhere } = await import('../where/translate-where.js');
    const agent = agentWith({ user: 'ada' });
    const scope = findScope({}, agent);
    const asked = () =>
      translateWhere(
        { owner: { $agent: 'user' } },
        scope.access('Post'),
        { reach: scope.reach.bind(scope, agent) },
        {
          strictPointerShapes: true,
        },
      );
    expect(asked).toThrow(Refused);
  });

  it('is checked for its column like any other', () => {
    const { policy } = compilePolicy({ classes: { Post: { filters: { ownr: { $agent: 'user' } } } } });
    expect(bindPolicy(policy, createSchemas(POST)).errors).toEqual([
      expect.objectContaining({ path: 'policy.classes.Post.filters' }),
    ]);
    const dated = compilePolicy({ classes: { Post: OWN } });
    expect(bindPolicy(dated.policy, createSchemas(withOwner('Date'))).errors).toEqual([]);
  });
});

describe('the filters of a class', () => {
  it('hold for every agent, once, and with the values of each level of sub-agents', async () => {
    const parent = agentWith({ claims: { sub: 'ada' } });
    const fixed = { filters: { state: 'live' } };
    expect(await filterOf(fixed, parent)).toEqual({ state: 'live' });
    expect(await filterOf(fixed, deriveAgent(parent))).toEqual({ state: 'live' });
    const child = deriveAgent(parent, { identity: { user: 'eve' } });
    expect(await filterOf(OWN, child, POST, 'eve')).toEqual({ $and: [{ owner: 'ada' }, { owner: 'eve' }] });
  });

  it('of a parent whose user is not known here refuse its sub-agents', async () => {
    const parent = agentWith({ identity: { kind: 'sessionToken', token: 't' } });
    const child = deriveAgent(parent, { identity: { user: 'eve' } });
    expect(await refusalOf(filterOf(OWN, child, POST, 'eve'))).toMatchObject({
      details: { kind: 'agent_value' },
    });
  });

  it('are not switched off by leaving filters out of an agent', () => {
    const agent = agentWith({});
    const scope = findScope({ filters: { state: 'live' } }, agent);
    expect(scope.findFixedAgentFilter('Post')).toEqual({ state: 'live' });
    expect(findScope(OWN, agent).findFixedAgentFilter('Post')).toBeUndefined();
  });
});
