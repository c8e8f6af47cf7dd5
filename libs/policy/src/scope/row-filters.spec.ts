import { Policies } from '../model/policy.js';
import { describe, expect, it } from 'vitest';
import {
  Agent,
  type AgentDefinitionOptions,
  compileAgentDefinition,
  deriveAgent,
  MASTER_PRINCIPALS,
  Refused,
} from '#core';
import { compilePolicy } from '../compile/compile-policy.js';
import type { FieldSchema, SchemaSnapshot } from '../model/class-schema.js';
import { AgentScopes } from './agent-scope.js';
import { tenantBinding } from './tenant.js';
import { createBoundClass } from '../compile/bound-class.fixture.js';

const classes = new Map(
  ['Post', 'Author'].map((className) => [
    className,
    {
      className,
      fields: new Map<string, FieldSchema>(
        ['status', 'active', 'a', 'level'].map((name) => [
          name,
          { type: name === 'status' ? 'String' : 'Array' },
        ]),
      ),
      indexes: [],
      classLevelPermissions: null,
    },
  ]),
);
const schemas: SchemaSnapshot = { classNames: () => [...classes.keys()], get: (name) => classes.get(name) };
const scopes = new AgentScopes(new Policies(compilePolicy({}).policy));
const root = (options: AgentDefinitionOptions) =>
  new Agent({ definition: compileAgentDefinition('x', options), principal: 'p' });
const filterOf = (agent: Agent, className = 'Post') =>
  scopes.of(schemas, agent, MASTER_PRINCIPALS).agentFilter(agent, className);
const refusalOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return error instanceof Refused ? error.refusal : error;
};

describe('the filter of an agent', () => {
  it('lays the entry of a class over the default one, field by field', async () => {
    const agent = root({ filters: { default: { active: true, a: 1 }, Post: { a: 2 } } });
    expect(await filterOf(agent)).toEqual({ active: true, a: 2 });
    expect(await filterOf(agent, 'Author')).toEqual({ active: true, a: 1 });
    expect(await filterOf(root({}))).toBeNull();
  });

  it('demands the alternatives of a class and those of the default, which name no column', async () => {
    const eu = { $or: [{ region: 'eu' }, { region: 'us' }] };
    const kinds = { $or: [{ kind: 'a' }, { kind: 'b' }], $and: [{ c: 1 }] };
    const agent = root({ filters: { default: { ...eu, $and: [{ d: 1 }] }, Post: kinds } });
    const wanted = { $or: kinds.$or, $and: [eu, { $and: [{ d: 1 }] }, { c: 1 }] };
    expect(await filterOf(agent)).toEqual(wanted);
    const computed = root({ filters: { default: () => ({ ...eu, $and: [{ d: 1 }] }), Post: () => kinds } });
    expect(await filterOf(computed)).toEqual(wanted);
  });

  it('is translated once and kept when it is a constraint', async () => {
    const agent = root({ filters: { Post: { status: 'live' } } });
    expect(await filterOf(agent)).toBe(await filterOf(agent));
  });

  it('is there without waiting unless a function of the agent or of a parent has to be called', async () => {
    const fixedOf = (agent: Agent) =>
      scopes.of(schemas, agent, MASTER_PRINCIPALS).findFixedAgentFilter('Post');
    const limited = root({ filters: { Post: { status: 'live' } } });
    const below = deriveAgent(limited, { filters: { Post: { level: 'b' } } });
    for (const agent of [root({}), limited, below]) expect(fixedOf(agent)).toEqual(await filterOf(agent));
    const computed = root({ filters: { Post: () => ({ status: 'live' }) } });
    expect(fixedOf(computed)).toBeUndefined();
    expect(fixedOf(deriveAgent(computed, { filters: { Post: { level: 'b' } } }))).toBeUndefined();
  });

  it('is called on every call when it is a function, with the agent it limits', async () => {
    const seen: unknown[] = [];
    const definition = compileAgentDefinition('x', {
      filters: {
        Post: ({ tenantId, depth }) => {
          seen.push(depth);
          return { status: `of ${String(tenantId)}` };
        },
      },
    });
    const [one, two] = ['a', 'b'].map((tenantId) => new Agent({ definition, principal: 'p', tenantId }));
    expect(await filterOf(one as Agent)).toEqual({ status: 'of a' });
    expect(await filterOf(two as Agent)).toEqual({ status: 'of b' });
    expect(seen).toEqual([0, 0]);
  });

  it('mixes a function with a constraint, the class entry winning a field', async () => {
    const agent = root({ filters: { default: async () => ({ active: true, a: 1 }), Post: { a: 2 } } });
    expect(await filterOf(agent)).toEqual({ active: true, a: 2 });
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('secret detail');
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret detail'))],
    ['returns nothing', () => undefined],
    ['returns null', () => null],
    ['returns a list', () => []],
    ['returns text', () => 'all'],
    ['returns an unknown operator', () => ({ status: { $nope: 1 } })],
    ['returns an internal column', () => ({ _hashed_password: 'x' })],
  ])('refuses the call when its function %s, and does not say why', async (_, filter) => {
    const refusal = await refusalOf(filterOf(root({ filters: { Post: filter as never } })));
    expect(refusal).toMatchObject({ code: 'access_denied', gate: 'agent_filter', cause: expect.any(String) });
    expect((refusal as { message: string }).message).not.toContain('secret');
  });
});

describe('the filter of a sub-agent', () => {
  it('is added to its parent’s, and replaces no field of it', async () => {
    const parent = root({ filters: { Post: { status: 'live', a: 1 } } });
    const child = deriveAgent(parent, { filters: { Post: { status: 'draft' } } });
    expect(await filterOf(child)).toEqual({ $and: [{ status: 'live', a: 1 }, { status: 'draft' }] });
    expect(await filterOf(deriveAgent(child))).toEqual(await filterOf(child));
  });

  it('never drops what an agent above it carries, however many levels down', async () => {
    let agent = root({ filters: { default: { level: 0 } } });
    const wanted: unknown[] = [{ level: 0 }];
    for (let level = 1; level <= 4; level += 1) {
      agent = deriveAgent(agent, { filters: { Post: { level } } });
      wanted.push({ level });
      const text = JSON.stringify(await filterOf(agent));
      for (const part of wanted) expect(text).toContain(JSON.stringify(part));
    }
  });

  it('asks a parent’s function as the parent, so that a child cannot talk it into less', async () => {
    const parent = root({
      permissions: 'admin',
      filters: { Post: ({ permissions }) => (permissions === 'admin' ? { status: 'live' } : {}) },
    });
    expect(await filterOf(deriveAgent(parent))).toEqual({ status: 'live' });
  });

  it('refuses when the function of any agent above it fails', async () => {
    const parent = root({ filters: { Post: () => Promise.reject(new Error('down')) } });
    expect(await refusalOf(filterOf(deriveAgent(deriveAgent(parent))))).toMatchObject({
      gate: 'agent_filter',
    });
  });
});

describe('the tenant of a sub-agent', () => {
  const scoped = createBoundClass('Post', { tenantScope: { field: 'orgId', bypass: ['readonly'] } });

  it('binds it even where its lower tier would bypass the scope', () => {
    const parent = root({ permissions: 'write', tenantId: 'acme' });
    expect(tenantBinding(deriveAgent(parent), scoped)).toEqual({ field: 'orgId', value: 'acme' });
  });

  it('opens no class that its parent, having none, is refused', () => {
    const parent = root({ permissions: 'write' });
    expect(
      tenantBinding(deriveAgent(parent, { permissions: 'write', tenantId: 'acme' }), scoped),
    ).toMatchObject({
      details: { kind: 'tenant_scope' },
    });
  });

  it('narrows a parent that bypasses the scope', () => {
    const child = deriveAgent(root({}), { tenantId: 'acme' });
    expect(tenantBinding(child, createBoundClass('Post', { tenantScope: { field: 'orgId' } }))).toMatchObject(
      {
        code: 'access_denied',
      },
    );
    const admin = root({ permissions: 'admin' });
    const bypassing = createBoundClass('Post', { tenantScope: { field: 'orgId', bypass: ['admin'] } });
    expect(tenantBinding(deriveAgent(admin, { tenantId: 'acme' }), bypassing)).toEqual({
      field: 'orgId',
      value: 'acme',
    });
  });
});
