import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isClassName, isParseClassName } from '#core';
import { classNameFor, referenceName, toSingular, toStem, tenantRank } from './name-guesses.js';

describe('the class of a collection', () => {
  it.each([
    ['orders', 'Order'],
    ['order_items', 'OrderItem'],
    ['orderItems', 'OrderItem'],
    ['order-lines', 'OrderLine'],
    ['categories', 'Category'],
    ['addresses', 'Address'],
    ['people', 'Person'],
    ['movies', 'Movie'],
    ['news', 'News'],
    ['statuses', 'Status'],
    ['houses', 'House'],
    ['boxes', 'Box'],
    ['APIKeys', 'ApiKey'],
    ['billing.invoices', 'BillingInvoice'],
    ['users', 'Users'],
    ['roles', 'Roles'],
    ['products', 'Products'],
    ['sessions', 'Sessions'],
    ['user', 'UserDocument'],
  ])('of %s is %s', (collection, className) => {
    expect(classNameFor(collection, new Set())).toBe(className);
  });

  it.each(['заказы', '2023', '___', ''])('of %j is none', (collection) => {
    expect(classNameFor(collection, new Set())).toBeNull();
  });

  it('is never that of another collection, never one of Parse, and always a name of a class', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.constantFrom('user', 'users', 'User', 'user_s', 'roles'))),
        (names) => {
          const taken = new Set<string>();
          for (const name of names) {
            const className = classNameFor(name, taken);
            if (className === null) continue;
            expect(taken.has(className)).toBe(false);
            expect(isClassName(className) && !isParseClassName(className)).toBe(true);
            taken.add(className);
          }
        },
      ),
    );
  });

  it.each([
    ['orders', 'order'],
    ['status', 'status'],
    ['gas', 'ga'],
    ['glass', 'glass'],
    ['bus', 'bus'],
    ['watches', 'watch'],
    ['days', 'day'],
    ['cities', 'city'],
  ])('%s is one %s', (word, singular) => {
    expect(toSingular(word)).toBe(singular);
  });
});

describe('a column', () => {
  it.each([
    ['customer_id', 'customer', 'customer'],
    ['customerId', 'customer', 'customer'],
    ['customerID', 'customer', 'customer'],
    ['customer', 'customer', 'customer'],
    ['order_item_ids', 'order_item', 'orderitem'],
    ['categories', 'categories', 'category'],
    ['id', 'id', 'id'],
    ['paid', 'paid', 'paid'],
  ])('%s refers to %s', (column, reference, stem) => {
    expect([referenceName(column), toStem(column)]).toEqual([reference, stem]);
  });

  it('may say which tenant a row belongs to', () => {
    const names = ['tenant_id', 'orgId', 'organizationId', 'account_id', 'workspace', 'customer_id', 'organ'];
    expect(names.filter((name) => tenantRank(name) !== null)).toEqual([
      'tenant_id',
      'orgId',
      'organizationId',
      'account_id',
      'workspace',
    ]);
  });
});
