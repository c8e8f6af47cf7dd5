import { describe, expect, it } from 'vitest';
import {
  CREDENTIAL_FIELDS,
  hasInternalSegment,
  INTERNAL_FIELDS,
  isInternalField,
} from './internal-fields.js';

describe('internal fields', () => {
  it.each([...INTERNAL_FIELDS, '_auth_data_facebook', 'auth_data', 'AuthData', 'Session_Token'])(
    'knows %s in any position of a path',
    (name) => {
      expect(isInternalField(name)).toBe(true);
      expect([name, `a.${name}`, `${name}.b`, `a.${name}.b`].every(hasInternalSegment)).toBe(true);
    },
  );

  it.each([
    'token',
    'password_hint',
    '_p_author',
    '_id',
    '_created_at',
    'aclNote',
    'auth',
    'data._auth',
    '__proto',
    '',
  ])('leaves %j to the class’s own rules', (name) => {
    expect(hasInternalSegment(name)).toBe(false);
  });

  it('counts row rights as internal, but not as credentials', () => {
    expect(
      ['_rperm', '_wperm', '_acl', '_tombstone'].filter((name) => CREDENTIAL_FIELDS.includes(name)),
    ).toEqual([]);
  });
});
