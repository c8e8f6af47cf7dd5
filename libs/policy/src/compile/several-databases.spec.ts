import { describe, expect, it } from 'vitest';
import { compileAgentDefinition } from '#core';
import type { ClassSchema, SchemaSnapshot } from '../model/class-schema.js';
import { bindPolicy, BoundPolicy } from './bind-policy.js';
import { lintPolicy } from '../lint/lint-policy.js';
import { createSchema, createSchemas } from './bound-class.fixture.js';
import { compilePolicy } from './compile-policy.js';
import type { ClassConfig } from './policy-config.js';

const plain = (schema: ClassSchema, database?: string): ClassSchema => ({
  ...schema,
  storage: 'plain',
  ...(database !== undefined && { database }),
});

function compile(classes: Readonly<Record<string, ClassConfig>>, unlistedClasses?: 'allow') {
  const { policy, issues } = compilePolicy(
    { classes, ...(unlistedClasses && { switches: { unlistedClasses } }) } as never,
    {
      databaseName: 'shop',
      databases: new Map([
        ['crm', { storage: 'plain', readOnly: false }],
        ['archive', { storage: 'plain', readOnly: true }],
      ]),
    },
  );
  expect(issues).toEqual([]);
  return policy;
}

const listErrors = (classes: Readonly<Record<string, ClassConfig>>, schemas: SchemaSnapshot, filters = {}) =>
  bindPolicy(compile(classes), schemas, [compileAgentDefinition('analyst', { filters })]).errors.map(
    ({ path, message }) => `${path}: ${message}`,
  );

describe('the rules of a class', () => {
  it.each([['crm'], [undefined]])(
    'are never those of a class of the same name in another database (%s)',
    (database) => {
      const policy = compile({ Customer: { database: 'archive' } });
      const schemas = createSchemas(plain(createSchema('Customer', 'name'), database));
      const bound = new BoundPolicy(policy, schemas);
      expect([bound.schemas.get('Customer'), bound.schemas.classNames()]).toEqual([undefined, []]);
    },
  );

  it('never reach a class of a further database that nobody listed', () => {
    const policy = compile({}, 'allow');
    const listed = createSchemas({ ...createSchema('Secret', 'name'), database: 'crm' });
    expect(new BoundPolicy(policy, listed).schemas.get('Secret')).toBeUndefined();
  });

  it('tell a database that is away where classes are left out', () => {
    const policy = compile({ Customer: { database: 'crm' } });
    const schemas = { ...createSchemas(createSchema('Unlisted')), isAway: () => true };
    const bound = new BoundPolicy(policy, schemas);
    expect(bound.schemas.isAway?.('Customer')).toBe(true);
    expect(bound.schemas.isAway?.('Unlisted')).toBe(false);
  });

  it('are not said to name what there is not while its database is away', () => {
    const policy = compile({ Customer: { database: 'crm' } });
    const schemas = { ...createSchemas(), isAway: (name: string) => name === 'Customer' };
    const found = lintPolicy(policy, [], new Set(), schemas).map(({ path }) => path);
    expect(found).not.toContain('policy.classes.Customer.collection');
  });

  it('may be of a collection that has the name of a class of Parse in another database', () => {
    const classes = { Order: {}, Sale: { database: 'crm', collection: 'Order' } };
    const schemas = createSchemas(createSchema('Order', 'number'), plain(createSchema('Sale'), 'crm'));
    expect(listErrors(classes, schemas)).toEqual([]);
  });
});

describe('a filter that asks a class of another database', () => {
  const inQuery = { owner: { $inQuery: { className: 'Customer', where: {} } } };
  const order = createSchema('Order', 'owner');
  const customer = plain(createSchema('Customer', 'name'), 'crm');

  it.each([
    ['there', createSchemas(order, customer)],
    ['away', createSchemas(order)],
  ])('is an error of the configuration, also while that database is %s', (_, schemas) => {
    const Customer = { database: 'crm' };
    const error = expect.stringContaining('another database') as unknown;
    expect(listErrors({ Order: { canonicalFilter: inQuery }, Customer }, schemas)).toEqual([error]);
    expect(listErrors({ Order: { filters: inQuery }, Customer }, schemas)).toEqual([error]);
    expect(listErrors({ Order: {}, Customer }, schemas, { Order: inQuery })).toEqual([error]);
  });
});
