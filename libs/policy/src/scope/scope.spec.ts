import { describe, expect, it } from 'vitest';
import { Agent, compileAgentShape } from '#agent';
import { compileClass } from '../compile/compile-class.js';
import { FieldNames } from '../model/field-names.js';
import type { ClassSchema, FieldSchema } from '../model/class-schema.js';
import { joinProjection } from './join-projection.js';
import { suggestNames } from './suggest-names.js';
import { foreignRow, tenantBinding, tenantConflict } from './tenant.js';

const agentOf = (tenantId: unknown, permissions: 'readonly' | 'admin' = 'readonly') =>
  new Agent({ shape: compileAgentShape('x', { permissions }), principal: 'p', tenantId: tenantId as string });
const scoped = compileClass('Post', { tenantScope: { field: 'org_id', bypass: ['admin'] } });

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
    expect(tenantBinding(agentOf(null), compileClass('Other', {}))).toBeNull();
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

  it('refuses a fetched row of another tenant, and one without any', () => {
    expect(foreignRow(binding, { orgId: 'acme' }, 'Post')).toBeNull();
    expect(foreignRow(binding, { orgId: 'other' }, 'Post')?.code).toBe('access_denied');
    expect(foreignRow(binding, {}, 'Post')?.code).toBe('access_denied');
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
    const policy = compileClass('Author', {
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
    const policy = compileClass('Author', { fields: ['name', 'bio'], largeFields: ['bio'] });
    expect(joinProjection(policy, schema)).toEqual({
      source: 'allowlist_minus_large',
      fields: ['name'],
      dropped: ['bio'],
    });
  });

  it('is else every field without the large ones', () => {
    const policy = compileClass('Author', { largeFields: ['bio', 'photo'] });
    expect(joinProjection(policy, schema)).toEqual({
      source: 'field_map_minus_large',
      fields: ['name'],
      dropped: ['bio', 'photo'],
    });
  });

  it('is nothing when the class declares none of them', () => {
    expect(joinProjection(compileClass('Author', {}), schema)).toBeNull();
  });
});

describe('suggestions', () => {
  it('are at most three near names, nearest first', () => {
    expect(suggestNames('Sogn', ['Album', 'Song', 'Songs', 'Sign', 'Singer', 'X'])).toEqual([
      'Sign',
      'Song',
      'Songs',
    ]);
  });

  it('are none when nothing is near', () => {
    expect(suggestNames('Invoice', ['Album'])).toEqual([]);
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
