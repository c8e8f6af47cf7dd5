import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listRefusedArgumentKeys } from './written-value.js';

const LISTED = (
  '_hashed_password _password_history authData auth_data _auth_data sessionToken session_token _session_token ACL acl ' +
  '_rperm _wperm _perishable_token _email_verify_token objectId id createdAt created_at updatedAt updated_at className __type'
).split(' ');

describe('argument keys of declared methods', () => {
  it.each(LISTED)('never hold %s at the top', (key) => {
    expect(listRefusedArgumentKeys({ fine: 1, [key]: 'x' })).toEqual([key]);
  });

  it('hold credentials and row rights at no depth, in lists neither', () => {
    const wraps = fc.array(
      fc.constantFrom<(inner: unknown) => unknown>(
        (x) => [x],
        (x) => ({ k: x }),
      ),
      { minLength: 1, maxLength: 10 },
    );
    const key = fc.constantFrom(
      '_hashed_password',
      'authData',
      'auth_data',
      'ACL',
      'acl',
      '_rperm',
      'session_token',
    );
    fc.assert(
      fc.property(key, wraps, (hidden, layers) => {
        const args = { a: layers.reduce((inner, wrap) => wrap(inner), { [hidden]: 1 } as unknown) };
        expect(listRefusedArgumentKeys(args)).toEqual([hidden]);
      }),
    );
  });

  it('may hold ids and types of values below the top', () => {
    const value = { __type: 'Pointer', className: 'Post', objectId: 'p1' };
    expect(listRefusedArgumentKeys({ target: value, list: [value] })).toEqual([]);
  });

  it('refuse what is nested too deep to be seen', () => {
    let nested: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) nested = [nested];
    expect(listRefusedArgumentKeys({ nested })).toHaveLength(1);
  });
});
