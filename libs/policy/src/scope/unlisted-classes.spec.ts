import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, MASTER_PRINCIPALS, type Principals, createPrincipals } from '#core';
import { createSchema, createSchemas } from '../compile/bound-class.fixture.js';
import { bindPolicy } from '../compile/bind-policy.js';
import { compilePolicy } from '../compile/compile-policy.js';
import type { PolicyConfig } from '../compile/policy-config.js';
import { lintPolicy } from '../lint/lint-policy.js';
import { isRefusal, type ReachSite } from '../model/class-access.js';
import type { ClassSchema, SchemaSnapshot, StorageForm } from '../model/class-schema.js';
import { Policies } from '../model/policy.js';
import { AgentScopes } from './agent-scope.js';

const plain = (className: string, ...names: string[]): ClassSchema => ({
  ...createSchema(className, ...names),
  storage: 'plain',
});
const reference = (className: string, target: string, schema: ClassSchema): ClassSchema => ({
  ...schema,
  className,
  fields: new Map([...schema.fields, ['ref', { type: 'Pointer', targetClass: target, origin: 'declared' }]]),
});
const SITES: readonly ReachSite[] = ['include', 'pipeline', 'constraint', 'owner', 'pointer'];

function findScope(
  config: PolicyConfig,
  storage: StorageForm,
  schemas: readonly ClassSchema[],
  principals: Principals = MASTER_PRINCIPALS,
) {
  const { policy, issues } = compilePolicy(config, { storage });
  expect(issues).toEqual([]);
  const agent = new Agent({
    definition: compileAgentDefinition('x', { permissions: 'admin' }),
    principal: 'p',
    ...(principals.strings && { identity: { kind: 'aclUser', userId: 'ada' } }),
  });
  const scope = new AgentScopes(new Policies(policy)).of(createSchemas(...schemas), agent, principals);
  return { agent, scope, policy };
}

describe('a class that is not listed', () => {
  const SCHEMAS = [plain('Order', 'number'), plain('Secret', 'text')];
  const listed = { classes: { Order: {} } };

  it.each<[string, PolicyConfig, StorageForm, readonly ClassSchema[]]>([
    ['in a plain database', listed, 'plain', SCHEMAS],
    [
      'in one of Parse whose policy says nothing of it',
      listed,
      'parse',
      [createSchema('Order', 'number'), createSchema('Secret', 'text')],
    ],
    [
      'in one of Parse that refuses it',
      { ...listed, unlistedClasses: 'refuse' },
      'parse',
      [createSchema('Order', 'number'), createSchema('Secret', 'text')],
    ],
    [
      'in one of Parse, where a collection has no entry',
      { classes: { Order: { storage: 'plain' } } },
      'parse',
      SCHEMAS,
    ],
  ])('does not exist %s, on any path', (_, config, storage, schemas) => {
    const { scope, agent } = findScope(config, storage, schemas);
    const unknown = (name: string) => JSON.stringify(scope.enter(agent, name)).replaceAll(name, 'NAME');
    expect(unknown('Secret')).toBe(unknown('Nowhere'));
    expect(isRefusal(scope.enter(agent, 'Order'))).toBe(false);
    for (const site of SITES) {
      const reached = scope.reach(agent, 'Secret', site);
      expect(isRefusal(reached) && reached.code).toBe('invalid_argument');
    }
    expect(scope.schemas.classNames()).toEqual(['Order']);
    expect(scope.schemas.get('Secret')).toBeUndefined();
    expect(scope.suggestions('Secre')).toEqual([]);
  });

  it('exists where the policy of a Parse database says allow', () => {
    const { scope, agent } = findScope({ ...listed, unlistedClasses: 'allow' }, 'parse', [
      createSchema('Order', 'number'),
      createSchema('Secret', 'text'),
    ]);
    expect(isRefusal(scope.enter(agent, 'Secret'))).toBe(false);
  });

  it('never appears, whichever classes are listed', () => {
    const names = ['Alpha', 'Beta', 'Gamma', 'Delta'];
    fc.assert(
      fc.property(fc.subarray(names), fc.subarray(names), (declared, existing) => {
        const classes = Object.fromEntries(declared.map((name) => [name, {}]));
        for (const storage of ['plain', 'parse'] as const) {
          const mergeStorage = (name: string) =>
            storage === 'plain' ? plain(name, 'a') : createSchema(name, 'a');
          const { scope, agent } = findScope({ classes }, storage, existing.map(mergeStorage));
          for (const name of names) {
            const exists = declared.includes(name) && existing.includes(name);
            expect(isRefusal(scope.enter(agent, name))).toBe(!exists);
            expect(scope.isListed(name) && scope.schemas.get(name) !== undefined).toBe(exists);
          }
        }
      }),
    );
  });

  it('is behind no reference: its column is not readable, in documents neither', () => {
    const order = plain('Order', 'number');
    const inside: ClassSchema = {
      ...order,
      fields: new Map([
        ...order.fields,
        ['lines', { type: 'Array', members: new Map([['of', { type: 'Pointer', targetClass: 'Secret' }]]) }],
      ]),
    };
    for (const [schema, column] of [
      [reference('Order', 'Secret', order), 'ref'],
      [inside, 'lines'],
    ] as const) {
      const { scope } = findScope(listed, 'plain', [schema]);
      const { readable } = scope.access('Order');
      expect(readable?.has('number')).toBe(true);
      expect(readable?.has(column)).toBe(false);
    }
  });

  it.each<[string, PolicyConfig]>([
    ['that is empty', {}],
    ['whose classes are all hidden', { classes: { Order: { hidden: true } } }],
  ])('is what a warning tells how to list, under a policy %s', (_, config) => {
    const { policy } = findScope(config, 'parse', [createSchema('Order', 'number')]);
    const warnings = (schemas: SchemaSnapshot | null) =>
      lintPolicy(policy, [], new Set(), schemas).map(({ path, message }) => `${path} ${message}`);
    for (const schemas of [createSchemas(createSchema('Order', 'number')), null])
      expect(warnings(schemas)).toContainEqual(
        expect.stringMatching(/^policy\.classes lists no class that agents may read.*parley init/),
      );
  });

  it('is asked nothing by filters of the operator, which are an error, and may be pointed to', () => {
    const question = { $inQuery: { className: 'Secret', where: { text: 'x' } } };
    const to = { __type: 'Pointer', className: 'Secret', objectId: 's' };
    const schemas = [
      reference('Order', 'Secret', createSchema('Order', 'number')),
      createSchema('Secret', 'text'),
    ];
    const errors = (config: PolicyConfig, filters: Record<string, Record<string, unknown>> = {}) => {
      const { policy, issues } = compilePolicy(config);
      expect(issues).toEqual([]);
      const agents = [compileAgentDefinition('x', { filters })];
      return bindPolicy(policy, createSchemas(...schemas), agents).errors.map(
        ({ path, message }) => `${path}: ${message}`,
      );
    };
    for (const option of ['filters', 'canonicalFilter'])
      expect(errors({ classes: { Order: { [option]: { ref: question } } } })).toEqual([
        expect.stringMatching(
          /^policy\.classes\.Order\..*asks class 'Secret', which policy\.classes does not list/,
        ),
      ]);
    expect(errors(listed, { Order: { ref: question } })).toEqual([
      expect.stringMatching(/^agents\.x\.filters\.Order: .*'Secret'/),
    ]);
    const known: PolicyConfig = {
      classes: { Order: { filters: { ref: question } }, Secret: { hidden: true } },
    };
    expect(errors(known)).toEqual([]);
    expect(errors({ classes: { Order: { filters: { ref: to } } } })).toEqual([]);
  });

  it('is asked nothing by the filter that a function of the operator makes', async () => {
    const question = { ref: { $notInQuery: { className: 'Secret', where: { text: 'x' } } } };
    const definition = compileAgentDefinition('x', { filters: { Order: () => question } });
    const agent = new Agent({ definition, principal: 'p' });
    const schemas = createSchemas(
      reference('Order', 'Secret', createSchema('Order', 'number')),
      createSchema('Secret', 'text'),
    );
    const scope = new AgentScopes(new Policies(compilePolicy(listed).policy)).of(
      schemas,
      agent,
      MASTER_PRINCIPALS,
    );
    await expect(scope.agentFilter(agent, 'Order')).rejects.toMatchObject({
      refusal: { cause: expect.stringContaining("'Secret'") as string },
    });
  });

  it('is no warning, and a listed one without a collection is', () => {
    const { policy } = findScope(listed, 'plain', SCHEMAS);
    const warnings = (...schemas: ClassSchema[]) =>
      lintPolicy(policy, [], new Set(), createSchemas(...schemas)).map(
        ({ path, message }) => `${path} ${message}`,
      );
    expect(warnings(...SCHEMAS).join()).not.toContain('Secret');
    expect(warnings()).toContainEqual(
      expect.stringMatching(/^policy\.classes\.Order\.collection .*no collection or view 'Order'/),
    );
  });
});

describe('a plain class', () => {
  it('is known by the name of a class of Parse where it has one, which is a warning', () => {
    const { policy } = findScope({ classes: { User: { collection: 'users' }, Order: {} } }, 'plain', []);
    const named = lintPolicy(policy, [], new Set(), null).filter(({ message }) =>
      message.includes('agents know'),
    );
    expect(named).toEqual([
      {
        path: 'policy.classes.User',
        message: expect.stringMatching(/'_User'.*another name, with collection: users$/) as string,
      },
    ]);
  });

  it('is refused to users and roles of Parse, whose rights its rows do not name', () => {
    const config = { classes: { Order: { storage: 'plain' as const } } };
    const { scope, agent } = findScope(
      config,
      'parse',
      [plain('Order', 'number')],
      createPrincipals('ada', ['ops']),
    );
    expect(scope.enter(agent, 'Order')).toMatchObject({
      code: 'access_denied',
      details: { kind: 'clp_denied' },
      cause: 'no_row_rights',
    });
    expect(scope.isListed('Order')).toBe(false);
    for (const operation of ['find', 'count', 'get', 'update', 'delete'] as const)
      expect(JSON.stringify(scope.rights.rows('Order', operation))).not.toMatch(/readableBy|writableBy/);
  });

  it('has no aliases: a property is the name of the column', () => {
    const { policy } = compilePolicy(
      { classes: { Order: { properties: { customer: { type: 'String', field: 'customer_id' } } } } },
      { storage: 'plain' },
    );
    expect(bindPolicy(policy, createSchemas(plain('Order', 'customer'))).errors).toEqual([]);
    const names = bindPolicy(policy, createSchemas(plain('Order', 'customer'))).classes.get('Order')?.names;
    expect(names?.column('customer')).toBe('customer');
    expect(names?.column('customer_id')).toBeNull();
  });

  it('is refused while the database has it in another form', () => {
    const { policy } = compilePolicy({ classes: { Order: { storage: 'plain' } } });
    expect(bindPolicy(policy, createSchemas(createSchema('Order', 'a'))).errors).toEqual([
      expect.objectContaining({ path: 'policy.classes.Order.storage' }),
    ]);
    const copy = compilePolicy({ classes: { Copy: { storage: 'plain', collection: 'Order' } } });
    expect(
      bindPolicy(copy.policy, createSchemas(createSchema('Order', 'a'), plain('Copy', 'a'))).errors,
    ).toEqual([expect.objectContaining({ path: 'policy.classes.Copy.collection' })]);
  });
});
