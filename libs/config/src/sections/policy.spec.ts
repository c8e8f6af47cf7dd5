import { Ajv } from 'ajv';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { AgentDefinitionOptions, BudgetOptions } from '#core';
import { type ClassConfig, compilePolicy, type PolicyConfig } from '#policy';
import { schemaErrors } from '#schema';
import { readDocumentedDefaults, readSchema } from '../schema/class-schema.js';
import type { AgentEntry } from './agents.js';
import { type BudgetConfig, type ClassEntry, PolicySection } from './policy.js';

const KEY = 'a-secret-of-at-least-32-characters!!';

describe('masks of a policy', () => {
  const validate = new Ajv({ strict: false }).compile(readSchema(PolicySection));
  const isValid = (masks: unknown, maskingKey?: string) => {
    const policy = { ...(maskingKey !== undefined && { maskingKey }), classes: { Card: { masks } } };
    const accepted = validate(policy);
    expect(schemaErrors(readSchema(PolicySection), policy).length === 0).toBe(accepted);
    return accepted;
  };
  it.each<[string, unknown]>([
    ['an unknown form', { pin: 'hide' }],
    ['a tier nobody has', { pin: { readonly: 'mask', root: 'none' } }],
    ['tiers without the lowest', { pin: { admin: 'none' } }],
    ['an ending of nothing', { pin: { mask: { keep: 0 } } }],
    ['an ending that is most of a value', { pin: { mask: { keep: 40 } } }],
    ['a storage column', { _hashed_password: 'mask' }],
    ['an operator', { 'a.$b': 'mask' }],
    ['a place in a list', { 'a.0.b': 'mask' }],
  ])('are not written as %s', (_, masks) => {
    expect(isValid(masks)).toBe(false);
  });

  it('are written as forms, forms with options, or forms per tier', () => {
    const masks = {
      pin: 'drop',
      'address.street': { readonly: { mask: { keep: 2 } }, write: 'none' },
      email: { hash: { domain: 'person', acrossTenants: true } },
    };
    expect(isValid(masks, KEY)).toBe(true);
    expect(isValid({}, 'too short')).toBe(false);
  });
});

describe('an option of agents or of classes', () => {
  it.each([
    ['allowMutations', 'it is an option of agents.NAME'],
    ['permissions', 'it is an option of agents.NAME'],
    ['tenantScope', 'it is an option of policy.classes.NAME'],
    ['agents', 'write agents beside policy'],
  ])('that stands in the policy is led to its place: %s', (key, place) => {
    expect(schemaErrors(readSchema(PolicySection), { [key]: true })).toEqual([
      expect.objectContaining({ path: [key], message: `unknown key: ${place}` }),
    ]);
  });
});

describe('switches of a policy', () => {
  it('have the defaults that are documented', () => {
    // Neither has one to document: the first is a variable of the environment, the second needs canaries.
    const { strictPointerShapes, canaryAction, ...switches } = compilePolicy({}).policy.switches;
    expect({ strictPointerShapes, canaryAction }).toEqual({ strictPointerShapes: true, canaryAction: null });
    expect(readDocumentedDefaults(PolicySection)).toEqual(switches);
  });
});

describe('classes of options', () => {
  it('have all options that other libs read, and no other', () => {
    expectTypeOf<keyof PolicySection>().toEqualTypeOf<keyof PolicyConfig>();
    expectTypeOf<keyof ClassEntry>().toEqualTypeOf<keyof ClassConfig>();
    expectTypeOf<keyof BudgetConfig>().toEqualTypeOf<keyof BudgetOptions>();
    expectTypeOf<keyof AgentEntry>().toEqualTypeOf<
      Exclude<keyof AgentDefinitionOptions, 'rateLimiter' | 'impersonationLabel'> | 'identity' | 'llm'
    >();
  });
});
