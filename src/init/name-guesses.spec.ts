import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isClassName, isParseClassName } from '#core';
import {
  classNameFor,
  isSensitiveName,
  isTenantName,
  referenceName,
  sensitiveTexts,
  singularOf,
  stemOf,
} from './name-guesses.js';

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
    expect(singularOf(word)).toBe(singular);
  });
});

describe('a column', () => {
  it.each([
    'password',
    'passwd',
    'passwordHash',
    'hashed_password',
    'userPassword',
    'salt',
    'pwd',
    'token',
    'refreshToken',
    'reset_tokens',
    'clientSecret',
    'apiKey',
    'api_key',
    'apikey',
    'API_KEYS',
    'privateKey',
    'credentials',
    'otp',
    'ssn',
    'socialSecurityNumber',
    'taxId',
    'iban',
    'cardNumber',
    'card',
    'creditCards',
    'cvv',
    'email',
    'emailAddress',
    'e-mail',
    'contactEmail',
    'phone',
    'phoneNumber',
    'mobile',
    'birthDate',
    'date_of_birth',
    'birthday',
    'dob',
    'street',
    'ipAddress',
    'passport',
    'salary',
  ])('%s is not for agents', (name) => {
    expect(isSensitiveName(name)).toBe(true);
  });

  it.each([
    'name',
    'title',
    'total',
    'status',
    'createdBy',
    'customer',
    'tags',
    'hashtags',
    'discarded',
    'cardinality',
    'keyword',
    'spinner',
    'saltiness',
    'description',
    'quantity',
    'latitude',
  ])('%s may be read', (name) => {
    expect(isSensitiveName(name)).toBe(false);
  });

  it.each<[string, string[], string | null]>([
    ['addresses', ['a@b.org', 'c.d@e.co.uk'], 'e-mail addresses'],
    ['mostly addresses', ['a@b.org', 'c@d.org', 'unknown'], 'e-mail addresses'],
    ['few addresses', ['a@b.org', 'x', 'y'], null],
    ['hashes', ['$2b$10$N9qo8uLOickgx2ZMRZoMye'], 'hashes of passwords'],
    ['argon2', ['$argon2id$v=19$m=65536'], 'hashes of passwords'],
    ['tokens', ['eyJhbGciOiJI.eyJzdWIiOiIx.x'], 'access tokens'],
    ['accounts', ['DE89370400440532013000', 'GB29 NWBK 6016 1331 9268 19'], 'bank accounts'],
    ['cards', ['4242 4242 4242 4242'], 'card numbers'],
    ['long numbers', ['1234567890123'], null],
    ['phones', ['+49 30 1234567'], 'phone numbers'],
    ['words', ['red', 'green'], null],
    ['nothing', [], null],
  ])('with %s is judged by its texts', (_title, texts, looks) => {
    expect(sensitiveTexts(texts)).toBe(looks);
  });

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
    expect([referenceName(column), stemOf(column)]).toEqual([reference, stem]);
  });

  it('may say which tenant a row belongs to', () => {
    const names = ['tenant_id', 'orgId', 'organizationId', 'account_id', 'workspace', 'customer_id', 'organ'];
    expect(names.filter(isTenantName)).toEqual([
      'tenant_id',
      'orgId',
      'organizationId',
      'account_id',
      'workspace',
    ]);
  });
});
