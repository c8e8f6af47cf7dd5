import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent, compileAgentDefinition, MASTER_PRINCIPALS, Refused } from '#core';
import { createSchemas } from '../compile/bound-class.fixture.js';
import { compilePolicy } from '../compile/compile-policy.js';
import type { ClassConfig } from '../compile/policy-config.js';
import { isRefusal } from '../model/class-access.js';
import type { ClassSchema, FieldSchema } from '../model/class-schema.js';
import { Policies } from '../model/policy.js';
import { AgentScopes } from '../scope/agent-scope.js';
import { isOwnRow, tenantBinding, tenantConflict } from '../scope/tenant.js';
import { planWrite } from './plan-write.js';

const text: FieldSchema = { type: 'String', origin: 'declared' };
const FIELDS: Readonly<Record<string, FieldSchema>> = {
  objectId: { type: 'String' },
  createdAt: { type: 'Date' },
  updatedAt: { type: 'Date' },
  number: { type: 'String', origin: 'validator', required: true },
  id: { type: 'Number', origin: 'declared' },
  total: { type: 'Number', origin: 'declared' },
  paid: { type: 'Boolean', origin: 'declared' },
  due: { type: 'Date', origin: 'declared' },
  customer: { type: 'Pointer', targetClass: 'Customer', origin: 'declared' },
  tags: { type: 'Array', targetClass: 'Tag', origin: 'declared' },
  notes: { type: 'Array', origin: 'declared' },
  meta: { type: 'Object', origin: 'declared' },
  lines: {
    type: 'Array',
    origin: 'declared',
    members: new Map<string, FieldSchema>([
      ['sku', { ...text, required: true }],
      ['qty', { type: 'Number', origin: 'declared' }],
      ['guessed', { type: 'String', origin: 'sample' }],
    ]),
  },
  made: {
    type: 'Object',
    origin: 'declared',
    members: new Map<string, FieldSchema>([
      ['by', { type: 'Pointer', targetClass: 'Customer', origin: 'declared' }],
      ['for', { type: 'Array', targetClass: 'Customer', origin: 'declared' }],
    ]),
  },
  guess: { type: 'String', origin: 'sample', seen: { String: 9, Null: 1 } },
  tenant: { type: 'Pointer', targetClass: 'Tenant', origin: 'declared' },
};
const ORDER: ClassSchema = {
  className: 'Order',
  fields: new Map(Object.entries(FIELDS)),
  indexes: [],
  classLevelPermissions: null,
  storage: 'plain',
};

function planned(
  fields: unknown,
  operation: 'create' | 'update' = 'update',
  config: ClassConfig = {},
  tenantId: string | number | null = null,
  withheld: readonly string[] = [],
) {
  const classes = { Order: config, Customer: {}, Tag: {}, Tenant: {} };
  const { policy, issues } = compilePolicy({ classes }, { storage: 'plain' });
  expect(issues).toEqual([]);
  const others = ['Customer', 'Tag', 'Tenant'].map((className) => ({ ...ORDER, className }));
  const agent = new Agent({
    definition: compileAgentDefinition('w', { permissions: 'write', classes: { except: withheld } }),
    principal: 'p',
    tenantId,
  });
  const scope = new AgentScopes(new Policies(policy)).of(
    createSchemas(ORDER, ...others),
    agent,
    MASTER_PRINCIPALS,
  );
  const tenant = tenantBinding(agent, scope.classPolicy('Order'));
  if (tenant && isRefusal(tenant)) throw new Refused(tenant);
  return planWrite(fields, {
    agent,
    access: scope.access('Order'),
    policy: scope.classPolicy('Order'),
    operation,
    tenant,
    indexes: [],
    findSchema: (className) => scope.schemas.get(className),
    judgeClass: (className) => {
      const judged = scope.reach(agent, className, 'pointer');
      return isRefusal(judged) ? judged : null;
    },
  });
}

const messageOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    if (error instanceof Refused) return error.refusal.message;
    throw error;
  }
  return 'permitted';
};

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

describe('a write to a plain class', () => {
  it.each<[string, unknown]>([
    ['a text', { number: 'A-1' }],
    ['a number', { total: 12.5 }],
    ['every digit of a decimal', { total: '12345678901234567890.123456789' }],
    ['the digits of a 64-bit number', { total: '-9223372036854775808' }],
    ['a column that is called id', { id: 7 }],
    ['a date', { due: { __type: 'Date', iso: '2025-01-31T09:00:00.000Z' } }],
    [
      'a reference whose id is a UUID',
      { customer: pointer('Customer', '0f8fad5b-d9cb-469f-a165-70867728950e') },
    ],
    ['a reference whose id is any text', { customer: pointer('Customer', 'ada@example.com / 1') }],
    ['a list of references', { tags: [pointer('Tag', 'a'), pointer('Tag', 'b')] }],
    ['a list without declared members', { notes: ['a', 1, { free: true }] }],
    ['an object without declared members', { meta: { any: { thing: [1] } } }],
    ['declared members', { lines: [{ sku: 'a', qty: '2' }, { sku: 'b' }] }],
    ['an increment', { total: { __op: 'Increment', amount: 2 } }],
    ['further entries', { lines: { __op: 'Add', objects: [{ sku: 'c', qty: 1 }] } }],
    ['nothing', { paid: null, meta: { __op: 'Delete' } }],
  ])('takes %s', (_, fields) => {
    expect(planned(fields)).toEqual({ fields, given: fields, added: new Map() });
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      '_id',
      { _id: 'x' },
      /'_id' may not be written: the database gives each row its id, which is objectId; leave it out/,
    ],
    ['objectId', { objectId: 'x' }, /'objectId' may not be written.*leave it out/],
    ['createdAt', { createdAt: 'x' }, /'createdAt' may not be written: it is set when the row is created/],
    ['updatedAt', { updatedAt: 'x' }, /'updatedAt' may not be written: it is set at every change/],
    ['ACL', { ACL: {} }, /'ACL' may not be written/],
    ['a column that nobody declared', { other: 1 }, /other may not be written: it is no declared column/],
    ['a column that is known from a sample', { guess: 'x' }, /only known from a sample/],
    ['another type', { paid: 'yes' }, /paid takes a Boolean, not a String/],
    ['a text that is no number', { total: '12,50' }, /total takes a number, or its digits as text/],
    ['a date as text', { due: '31 January' }, /due takes a Date, not a String; write it as/],
    ['a reference to another class', { customer: pointer('Tag', 'a') }, /customer takes a Pointer<Customer>/],
    [
      'a bare id',
      { customer: 'a' },
      /customer takes a Pointer<Customer>, not a String; write it as \{"__type":"Pointer","className":"Customer"/,
    ],
    ['a list of bare ids', { tags: ['a'] }, /tags takes a list of pointers/],
    ['an entry of another class', { tags: [pointer('Customer', 'a')] }, /tags takes a list of pointers/],
    [
      'a member that is not declared',
      { lines: [{ sku: 'a', price: 1 }] },
      /lines\.price may not be written: lines has sku, qty/,
    ],
    [
      'a member that is known from a sample',
      { lines: [{ sku: 'a', guessed: 'x' }] },
      /lines\.guessed may not be written/,
    ],
    ['a member of another type', { lines: [{ sku: 1 }] }, /lines\.sku takes a String/],
    ['an entry without a required member', { lines: [{ qty: 1 }] }, /lines\.sku is required/],
    ['an entry that is no object', { lines: ['a'] }, /lines takes a list of objects with sku, qty/],
    [
      'an entry that is added',
      { lines: { __op: 'Add', objects: [{ qty: 'x' }] } },
      /lines\.qty takes a number/,
    ],
    [
      'an increment of a text',
      { number: { __op: 'Increment', amount: 1 } },
      /number takes a String, not a Number/,
    ],
    ['entries for a text', { number: { __op: 'Add', objects: ['a'] } }, /number takes a String, not a Array/],
    ['no value for a required column', { number: null }, /number is required/],
    ['an operator', { meta: { $set: 1 } }, /./],
    ['a credential', { sessionToken: 'x' }, /may not be written/],
  ])('refuses %s, and says what to write', (_, fields, message) => {
    expect(messageOf(() => planned(fields))).toMatch(message);
  });

  it('never leads to a column that is not declared, whatever is written', () => {
    const name = fc.oneof(
      fc.constantFrom(...Object.keys(FIELDS)),
      fc.string({ minLength: 1, maxLength: 12 }),
    );
    fc.assert(
      fc.property(fc.dictionary(name, fc.jsonValue(), { minKeys: 1, maxKeys: 4 }), (fields) => {
        let plan;
        try {
          plan = planned(fields);
        } catch (error) {
          expect(error).toBeInstanceOf(Refused);
          return;
        }
        expect(plan.added.size).toBe(0);
        for (const written of Object.keys(plan.fields)) {
          expect(FIELDS[written]?.origin).toMatch(/^(declared|validator)$/);
          expect(['objectId', 'createdAt', 'updatedAt']).not.toContain(written);
        }
      }),
    );
  });

  it('never names a withheld class in a refusal, whatever is written', () => {
    const createRefused = (fields: unknown) =>
      messageOf(() => planned(fields, 'update', {}, null, ['Customer', 'Tag']));
    expect(createRefused({ customer: 'a' })).toMatch(/'customer' .* outside agent_fields allowlist/);
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constant(pointer('Tenant', 'a')),
      fc.constant({ __op: 'Increment', amount: 1 }),
      fc.array(fc.jsonValue(), { maxLength: 2 }).map((objects) => ({ __op: 'Add', objects })),
    );
    fc.assert(
      fc.property(fc.constantFrom('by', 'for'), value, (name, given) => {
        for (const fields of [{ made: { [name]: given } }, { customer: given }, { tags: given }])
          expect(createRefused(fields)).not.toMatch(/Customer|Tag/);
      }),
    );
  });

  it('needs what the validator of the collection needs', () => {
    expect(messageOf(() => planned({ paid: true }, 'create'))).toMatch(/number is required/);
    expect(planned({ number: 'A-1' }, 'create').fields).toEqual({ number: 'A-1' });
  });

  it('carries the tenant in the form of its column', () => {
    const config = { tenantScope: { field: 'tenant' } };
    const fields = { number: 'A-1' };
    expect(planned(fields, 'create', config, 't1').fields).toEqual({
      ...fields,
      tenant: pointer('Tenant', 't1'),
    });
    expect(
      planned({ ...fields, tenant: pointer('Tenant', 't1') }, 'create', config, 't1').fields,
    ).toMatchObject({
      tenant: pointer('Tenant', 't1'),
    });
    expect(
      messageOf(() => planned({ ...fields, tenant: pointer('Tenant', 't2') }, 'create', config, 't1')),
    ).toMatch(/Tenant scope conflict/);
  });
});

describe('the tenant of a plain row', () => {
  const binding = { field: 'tenant', value: 't1', operand: 't1' } as const;

  it.each<[unknown, boolean]>([
    ['t1', true],
    [pointer('Tenant', 't1'), true],
    [pointer('Tenant', 't2'), false],
    ['t2', false],
    [undefined, false],
    [null, false],
    [{ $ne: 't2' }, false],
    [['t1'], false],
    [true, false],
  ])('%j is its own: %s', (value, own) => {
    expect(isOwnRow(binding, { tenant: value })).toBe(own);
  });

  it('may be a number that the agent has as text', () => {
    expect(isOwnRow({ field: 'tenant', value: '17', operand: '17' }, { tenant: 17 })).toBe(true);
    expect(isOwnRow({ field: 'tenant', value: '17' }, { tenant: 17 })).toBe(false);
  });

  it('may be named by a caller in any form that means it', () => {
    const names = { wireName: (name: string) => name } as never;
    expect(tenantConflict(binding, { tenant: pointer('Tenant', 't1') }, names, 'Order')).toBeNull();
    expect(tenantConflict(binding, { tenant: { $eq: 't1' } }, names, 'Order')).not.toBeNull();
  });
});
