import { expect, it } from 'vitest';
import { compilePolicy } from './compile-policy.js';
import type { ClassConfig } from './policy-config.js';

it('The version of a policy is another one with each function and pattern that code gives it', () => {
  const classes: readonly ClassConfig[] = [
    {},
    { canonicalFilter: { title: { $regex: /a/ } } },
    { canonicalFilter: { title: { $regex: /b/ } } },
    { tenantScope: { field: 'org', bypass: ({ principal }) => principal === 'ada' } },
    { tenantScope: { field: 'org', bypass: ({ principal }) => principal === 'bob' } },
  ];
  const versions = classes.map((Post) => compilePolicy({ classes: { Post } }).policy.version);
  expect(new Set(versions).size).toBe(classes.length);
});
