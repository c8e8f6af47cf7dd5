import { describe, expect, it } from 'vitest';
import { compileAgentDefinition } from '#core';
import { compilePolicy } from '../compile/compile-policy.js';
import type { ClassConfig } from '../compile/policy-config.js';
import type { ClassSchema, FieldSchema, SchemaSnapshot } from '../model/class-schema.js';
import { lintPolicy } from './lint-policy.js';

const schema = (className: string, ...names: string[]): ClassSchema => ({
  className,
  fields: new Map(names.map((name): [string, FieldSchema] => [name, { type: 'String' }])),
  indexes: [],
  classLevelPermissions: null,
});
const CLASSES = [schema('Post', 'title', 'status', 'orgId'), schema('_User', 'username')];
const SCHEMAS: SchemaSnapshot = {
  get: (name) => CLASSES.find(({ className }) => className === name),
  classNames: () => CLASSES.map(({ className }) => className),
};

function warnings(
  classes: Record<string, ClassConfig>,
  agent: Parameters<typeof compileAgentDefinition>[1] = { tenantId: 'acme' },
  schemas: SchemaSnapshot | null = SCHEMAS,
): string[] {
  const { policy, issues } = compilePolicy({ unlistedClasses: 'allow', classes });
  expect(issues).toEqual([]);
  const definitions = [compileAgentDefinition('analyst', agent)];
  return lintPolicy(policy, definitions, new Set(['query_class']), schemas).map(
    ({ path, message }) => `${path}: ${message}`,
  );
}
const Post: ClassConfig = { description: 'Articles' };

describe('a policy is warned about', () => {
  it('nothing, when every name exists and every class is described', () => {
    const classes = { Post: { ...Post, fields: ['title'], canonicalFilter: { $or: [{ status: 'x' }] } } };
    expect(warnings(classes)).toEqual([]);
  });

  it.each<[string, Record<string, ClassConfig>, RegExp]>([
    ['a class that is not there, hidden or not', { Post, Posts: { hidden: true } }, /Posts: .*mean 'Post'/],
    [
      'a property that is not there',
      { Post: { ...Post, properties: { titel: { description: 'x' } } } },
      /Post\.properties: .*mean 'title'/,
    ],
    [
      'a mask on a field that nobody reads',
      { Post: { ...Post, fields: ['title'], masks: { status: 'mask' } } },
      /masks\.status: has no effect/,
    ],
    ['a class without a description', { Post: {} }, /Post: no description/],
    ['a class that nobody declared', {}, /not declared.*: Post$/],
  ])('%s', (_, classes, text) => {
    expect(warnings(classes)).toEqual([expect.stringMatching(text)]);
  });

  it('a class exposed on purpose without a tenant, where others have one', () => {
    const scoped = { Post: { ...Post, tenantScope: { field: 'orgId' } } };
    const user = { description: 'Accounts' };
    expect(warnings({ ...scoped, _User: user })).toEqual([]);
    expect(warnings({ ...scoped, _User: { ...user, visible: true } })).toEqual([
      expect.stringMatching(/_User: no tenantScope/),
    ]);
    expect(warnings({ Post, _User: { ...user, visible: true } })).toEqual([]);
  });

  it('a vector index that cannot filter by tenant, with the filter fields to write', () => {
    const convertSearched = (filterFields: string[], more: ClassConfig = {}) =>
      warnings({
        Post: {
          ...Post,
          tenantScope: { field: 'orgId' },
          searchable: { field: 'title', filterFields },
          ...more,
        },
      });
    expect(convertSearched(['status'])).toEqual([
      expect.stringMatching(/Post\.searchable\.filterFields: .*write filterFields: \[status, orgId\]$/),
    ]);
    expect(convertSearched(['orgId'])).toEqual([]);
    expect(convertSearched([], { hidden: true })).toEqual([]);
    expect(warnings({ Post: { ...Post, searchable: { field: 'title' } } })).toEqual([]);
  });

  it('agents that lack the tenant a class asks for', () => {
    const scoped = { Post: { ...Post, tenantScope: { field: 'orgId', bypass: ['admin'] } } };
    expect(warnings(scoped, {})).toEqual([expect.stringMatching(/cannot read it: analyst/)]);
    expect(warnings(scoped, { permissions: 'admin' })).toEqual([]);
    expect(warnings(scoped, { classes: { except: ['Post'] } })).toEqual([]);
  });

  it('names in an agent that lead nowhere', () => {
    const agent = {
      tools: { except: ['query_clas'] },
      classes: { except: ['Pots'] },
      filters: { Pots: { status: 1 } },
    };
    expect(warnings({ Post }, agent)).toEqual([
      expect.stringMatching(/agents\.analyst\.tools: .*mean 'query_class'/),
      expect.stringMatching(/agents\.analyst\.filters\.Pots: .*mean 'Post'/),
      expect.stringMatching(/agents\.analyst\.classes: .*mean 'Post'/),
    ]);
  });

  it('no missing name, when the database could not be read', () => {
    expect(warnings({ Posts: { ...Post, fields: ['x'] } }, {}, null)).toEqual([]);
  });
});
