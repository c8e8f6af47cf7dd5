import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AgentDefinitionOptions, compileAgentDefinition } from '#core';
import { compilePolicy } from './compile-policy.js';
import type { ClassConfig } from './policy-config.js';
import { bindPolicy, BoundPolicy } from './bind-policy.js';
import { createBoundClass, createSchema, createSchemas } from './bound-class.fixture.js';
import { columnNames } from '../model/column-names.fixture.js';

const CARD = createSchema('Card', 'SSN', 'ssn', 'full_text', 'fullText', 'created_on', 'orgId', 'vector');
const OTHER = createSchema('Other', 'is_open');

function errorsOf(config: ClassConfig, agent: AgentDefinitionOptions = {}): string[] {
  const { policy, issues } = compilePolicy({
    maskingKey: 'a-secret-of-at-least-32-characters!!',
    classes: { Card: config, Other: { hidden: true } },
  });
  expect(issues).toEqual([]);
  const { errors } = bindPolicy(policy, createSchemas(CARD, OTHER), [
    compileAgentDefinition('analyst', agent),
  ]);
  return errors.map(({ path, message }) => `${path}: ${message}`);
}

describe('rules on columns that are there', () => {
  it('hold for the columns of exactly those names, and for lowerCamel forms where there are none', () => {
    const policy = createBoundClass(
      'Card',
      {
        fields: ['SSN', 'full_text', 'org_id', 'created_at', 'ACL'],
        joinFields: ['full_text', 'objectId'],
        largeFields: ['full_text'],
        masks: { SSN: 'drop', 'full_text.a_b': 'mask' },
        tenantScope: { field: 'org_id' },
        searchable: { field: 'vector', textFields: ['full_text'], filterFields: ['org_id', 'SSN'] },
        properties: { org_id: { description: 'o' }, SSN: { description: 's' } },
      },
      CARD,
    );
    expect(policy).toMatchObject({
      fields: ['SSN', 'full_text', 'orgId'],
      joinFields: ['full_text', 'objectId'],
      largeFields: ['full_text'],
      tenantScope: { field: 'orgId' },
      searchable: { field: 'vector', textFields: ['full_text'], filterFields: ['orgId', 'SSN'] },
    });
    expect([...policy.masks.keys()]).toEqual(['SSN', 'full_text.a_b']);
    expect([...policy.properties.keys()]).toEqual(['orgId', 'SSN']);
  });

  it('are no errors, filters and questions to other classes included', () => {
    const filter = {
      $or: [{ SSN: 'x' }, { 'full_text.a': { $exists: true } }],
      created_on: { $inQuery: { className: 'Other', where: { is_open: 'yes' } } },
    };
    expect(errorsOf({ canonicalFilter: filter }, { filters: { Card: filter } })).toEqual([]);
  });

  it('hold for every column of any class by its own name', () => {
    fc.assert(
      fc.property(columnNames, (columns) => {
        const masks = Object.fromEntries(columns.map((name) => [name, 'drop' as const]));
        const policy = createBoundClass(
          'Any',
          { fields: columns, masks, largeFields: columns },
          createSchema('Any', ...columns),
        );
        expect(policy.fields).toEqual(columns);
        expect(policy.largeFields).toEqual(columns);
        expect([...policy.masks.keys()]).toEqual(columns);
      }),
    );
  });
});

describe('rules on columns that are not there', () => {
  it.each<[string, ClassConfig, AgentDefinitionOptions, RegExp]>([
    [
      'fields',
      { fields: ['fulltext'] },
      {},
      /\.fields: .*no field 'fulltext' in class 'Card'; did you mean .*'full_text'/,
    ],
    ['joinFields', { joinFields: ['sSN'] }, {}, /\.joinFields: .*'sSN'.*mean 'SSN' or 'ssn'/],
    ['largeFields', { largeFields: ['Fulltext'] }, {}, /\.largeFields: .*'Fulltext'/],
    ['a mask', { masks: { socialNo: 'drop' } }, {}, /\.masks\.socialNo: .*'socialNo' in class 'Card'/],
    ['a mask inside one', { masks: { 'SSn.a': 'mask' } }, {}, /\.masks\.SSn\.a: .*'SSn'/],
    ['the tenant', { tenantScope: { field: 'orgIdd' } }, {}, /\.tenantScope\.field: .*mean 'orgId'/],
    ['the vector', { searchable: { field: 'vectors' } }, {}, /\.searchable\.field: .*mean 'vector'/],
    [
      'a text of it',
      { searchable: { field: 'vector', textFields: ['fulltext'] } },
      {},
      /\.searchable\.textFields: .*'fulltext'/,
    ],
    [
      'a filter of it',
      { searchable: { field: 'vector', filterFields: ['createdOn'] } },
      {},
      /\.searchable\.filterFields: .*mean 'created_on'/,
    ],
    [
      'a default view',
      { canonicalFilter: { $nor: [{ isDeleted: true }] } },
      {},
      /\.canonicalFilter: .*'isDeleted'/,
    ],
    [
      'a question of it',
      { canonicalFilter: { created_on: { $inQuery: { className: 'Other', where: { isOpen: true } } } } },
      {},
      /\.canonicalFilter: .*'isOpen' in class 'Other'; did you mean 'is_open'/,
    ],
    ['a row filter', {}, { filters: { Card: { 'org.x': 1 } } }, /^agents\.analyst\.filters\.Card: .*'org'/],
    [
      'the filter for every class, where it fits none',
      {},
      { filters: { default: { nowhere: 1 } } },
      /^agents\.analyst\.filters\.default: fits no class: .*'nowhere'/,
    ],
    [
      'an alias that is itself a column',
      { properties: { ssn: { field: 'SSN' } } },
      {},
      /\.properties\.ssn\.field: class 'Card' has a field 'ssn' of its own/,
    ],
    [
      'two masks of one column',
      { masks: { orgId: 'mask', org_id: 'drop' } },
      {},
      /\.masks\.org_id: masks the same field as 'orgId' in another way/,
    ],
    [
      'two properties of one column',
      { properties: { orgId: { targetClass: 'A' }, org_id: { targetClass: 'B' } } },
      {},
      /\.properties\.org_id\.targetClass: speaks of the same field as 'orgId'/,
    ],
    [
      'a join with a column outside fields, of another name that only looks the same',
      { fields: ['full_text'], joinFields: ['fullText'] },
      {},
      /\.joinFields: not among fields: fullText/,
    ],
    [
      'a searched text outside fields, of another name that only looks the same',
      { fields: ['full_text'], searchable: { field: 'vector', textFields: ['fullText'] } },
      {},
      /\.searchable\.textFields: not among fields: fullText/,
    ],
  ])('are one error: %s', (_, config, agent, line) => {
    expect(errorsOf(config, agent)).toEqual([expect.stringMatching(line)]);
  });

  it('say what to write, in one line', () => {
    expect(errorsOf({ masks: { fulltextt: 'drop' } })).toEqual([
      "policy.classes.Card.masks.fulltextt: the database has no field 'fulltextt' in class 'Card'; did you mean 'fullText' or 'full_text'? " +
        'Write the field as the database names it, or leave it out',
    ]);
  });

  it('are no error of a class that the database does not have', () => {
    const { policy } = compilePolicy({ classes: { Card: { masks: { any: 'drop' }, fields: ['other'] } } });
    const definition = compileAgentDefinition('x', { filters: { Card: { gone: 1 } } });
    expect(bindPolicy(policy, createSchemas(OTHER), [definition]).errors).toEqual([]);
  });

  it('two columns that only look the same are masked each in its own way', () => {
    expect(errorsOf({ masks: { SSN: 'drop', ssn: 'mask', full_text: 'hash', fullText: 'deny' } })).toEqual(
      [],
    );
  });
});

describe('a policy over a newer snapshot', () => {
  const declared = { fields: ['SSN', 'full_text'], canonicalFilter: { orgId: { $exists: true } } };
  const { policy } = compilePolicy({ unlistedClasses: 'allow', classes: { Card: declared } });

  it('takes over its classes while no column changed', () => {
    const before = new BoundPolicy(policy, createSchemas(CARD, OTHER));
    const again = createSchemas({ ...CARD, fields: new Map(CARD.fields), classLevelPermissions: {} }, OTHER);
    const after = new BoundPolicy(policy, again, before);
    expect(after.classPolicy('Card')).toBe(before.classPolicy('Card'));
    expect(after.classPolicy('Other')).toBe(before.classPolicy('Other'));
  });

  it('is the same as one that was never bound before, whatever changed', () => {
    const fields = fc.uniqueArray(fc.constantFrom('SSN', 'fullText', 'full_text', 'orgId'));
    const snapshots = fc.tuple(fields, fc.boolean(), fc.constantFrom('String' as const, 'Date' as const));
    const snapshotOf = ([names, other, type]: [string[], boolean, 'String' | 'Date']) => {
      const card = createSchema('Card', ...names);
      const typed = new Map([...card.fields].map(([name, field]) => [name, { ...field, type }]));
      return createSchemas({ ...card, fields: typed }, ...(other ? [OTHER] : []));
    };
    fc.assert(
      fc.property(snapshots, snapshots, (one, other) => {
        const before = new BoundPolicy(policy, snapshotOf(one));
        before.classPolicy('Other');
        const after = new BoundPolicy(policy, snapshotOf(other), before);
        const fresh = new BoundPolicy(policy, snapshotOf(other));
        expect(after.issues).toEqual(fresh.issues);
        for (const name of ['Card', 'Other'])
          expect(after.classPolicy(name)).toEqual(fresh.classPolicy(name));
      }),
    );
  });

  it('belongs to one policy only', () => {
    const before = new BoundPolicy(policy, createSchemas(CARD));
    const changed = compilePolicy({ classes: { Card: { fields: ['orgId'] } } }).policy;
    expect(new BoundPolicy(changed, createSchemas(CARD), before).classPolicy('Card').fields).toEqual([
      'orgId',
    ]);
  });
});
