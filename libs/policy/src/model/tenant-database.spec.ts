import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPatternProblem, mayShareNames, nameTenantDatabase } from './tenant-database.js';

const app = { pattern: 't_{tenant}', taken: ['t_fixed', 'parley'] };
const anything = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('a', 'A', '1', '_', '-', '.', '$', '/', ' ', '\0', 'é', '{tenant}') }),
  fc.integer(),
  fc.double(),
  fc.constant(null),
);

describe('the name of the database of a tenant', () => {
  it.each([
    ['acme', 't_acme'],
    ['a-1_b', 't_a-1_b'],
    [7, 't_7'],
  ])('of %j is %s', (tenant, name) => {
    expect(nameTenantDatabase(app, tenant)).toBe(name);
  });

  it.each([
    null,
    undefined,
    '',
    ' ',
    '..',
    'a.b',
    'a/b',
    'a\\b',
    '$&',
    'a\0',
    'a\n',
    'Acme',
    'é',
    '\u212A',
    'a'.repeat(62),
    1.5,
    1e21,
    NaN,
    'fixed',
  ])('is none for %j', (tenant) => {
    expect(nameTenantDatabase(app, tenant)).toBeNull();
  });

  it('is never one of the server or of the configuration', () => {
    const bare = { pattern: '{tenant}', taken: ['parley'] };
    for (const tenant of ['admin', 'local', 'config', 'parley'])
      expect(nameTenantDatabase(bare, tenant)).toBeNull();
    expect(nameTenantDatabase({ pattern: 'AD{tenant}', taken: [] }, 'min')).toBeNull();
  });

  it('is never shared by two tenants, in any case of its letters', () => {
    fc.assert(
      fc.property(anything, anything, (one, other) => {
        const [name, its] = [one, other].map((tenant) => nameTenantDatabase(app, tenant)?.toLowerCase());
        if (name !== undefined && name === its) expect(String(one)).toBe(String(other));
      }),
    );
  });

  it('is always one that MongoDB takes, of the pattern and the tenant alone', () => {
    fc.assert(
      fc.property(anything, (tenant) => {
        const name = nameTenantDatabase(app, tenant);
        if (name !== null) expect(name).toMatch(/^t_[a-z0-9_-]{1,61}$/);
      }),
    );
  });
});

describe('two entries of databases of tenants', () => {
  it('may share names exactly where the names of one can be those of the other', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '_'), maxLength: 3 });
    fc.assert(
      fc.property(part, part, part, part, part, part, (start, end, otherStart, otherEnd, tenant, its) => {
        const [one, other] = [`${start}{tenant}${end}`, `${otherStart}{tenant}${otherEnd}`];
        const name = nameTenantDatabase({ pattern: one, taken: [] }, tenant);
        if (name !== null && name === nameTenantDatabase({ pattern: other, taken: [] }, its))
          expect(mayShareNames(one, other)).toBe(true);
      }),
    );
  });

  it.each(['t_{tenant}', '{tenant}', '{tenant}-eu'])('%s names them', (pattern) => {
    expect(findPatternProblem(pattern)).toBeNull();
  });

  it.each(['{tenant}{tenant}', '{user}', 't{', 'a.{tenant}', `${'a'.repeat(41)}{tenant}`])(
    '%s does not',
    (pattern) => {
      expect(findPatternProblem(pattern)).toContain('{tenant}');
    },
  );
});
