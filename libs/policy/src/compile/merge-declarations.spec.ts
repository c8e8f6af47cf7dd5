import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PolicyIssue } from '../model/policy-issue.js';
import { compileClass } from './compile-class.js';
import { compilePolicy } from './compile-policy.js';
import { narrowClassConfig, withDeclaredClasses } from './merge-declarations.js';
import type { ClassConfig } from './policy-config.js';

const names = fc.subarray(['title', 'status', 'play_count', 'playCount', 'body']);
const config: fc.Arbitrary<ClassConfig> = fc.record(
  {
    description: fc.constantFrom('one', 'other'),
    hidden: fc.constantFrom<NonNullable<ClassConfig['hidden']>>(true, false, { except: 'masterKey' }),
    fields: names,
    largeFields: names,
    canonicalFilter: fc.constantFrom({ archived: false }, { status: 'live' }),
    tenantScope: fc.record({ field: fc.constant('orgId'), bypass: fc.subarray(['write', 'admin']) }),
    allowCollscan: fc.boolean(),
    properties: fc.constantFrom<NonNullable<ClassConfig['properties']>>(
      { status: { enum: { a: 'A', b: 'B' } } },
      { status: { enum: { b: 'B' }, description: 'x' } },
    ),
  },
  { requiredKeys: [] },
);

const RANK = { no: 0, exceptMaster: 1, always: 2 };

describe('rules of code and file', () => {
  it('never permit what either refuses', () => {
    fc.assert(
      fc.property(config, config, (one, other) => {
        const joined = compileClass('Post', narrowClassConfig('Post', one, other));
        for (const side of [compileClass('Post', one), compileClass('Post', other)]) {
          expect(RANK[joined.hiding]).toBeGreaterThanOrEqual(RANK[side.hiding]);
          if (side.fields) expect(side.fields).toEqual(expect.arrayContaining([...(joined.fields ?? ['*'])]));
          for (const large of side.largeFields) expect(joined.largeFields).toContain(large);
          if (side.tenantScope) {
            expect(joined.tenantScope?.field).toBe(side.tenantScope.field);
            const bypass = joined.tenantScope?.bypass as readonly string[];
            expect(side.tenantScope.bypass).toEqual(expect.arrayContaining([...bypass]));
          }
          if (side.canonicalFilter)
            expect(JSON.stringify(joined.canonicalFilter)).toContain(JSON.stringify(side.canonicalFilter));
        }
        if (one.allowCollscan === false || other.allowCollscan === false)
          expect(joined.allowCollscan).toBe(false);
      }),
    );
  });

  it('keep the texts of the file and the values that both declare', () => {
    const joined = narrowClassConfig(
      'Post',
      { description: 'file', properties: { status: { description: 'file', enum: { a: 'A', b: 'B' } } } },
      { description: 'code', usage: 'code', properties: { status: { enum: { b: 'B', c: 'C' } } } },
    );
    expect(joined).toMatchObject({ description: 'file', usage: 'code' });
    expect(joined.properties?.['status']).toEqual({ description: 'file', enum: { b: 'B' } });
  });

  it('compile to the same model, whichever said it', () => {
    const rules: ClassConfig = { fields: ['title'], canonicalFilter: { archived: false } };
    const fromFile = compilePolicy({ classes: { Post: rules } }).policy.classes;
    const fromCode = compilePolicy(withDeclaredClasses({}, [{ className: 'Post', config: rules }])).policy
      .classes;
    expect([...fromCode]).toEqual([...fromFile]);
  });

  it('join a system class under both of its names', () => {
    const joined = withDeclaredClasses({ classes: { _User: { fields: ['username', 'email'] } } }, [
      { className: 'User', config: { fields: ['username'] } },
    ]);
    expect(joined.classes).toEqual({ _User: { fields: ['username'] } });
  });

  it('hold what one side joins with to the allowlist of the other', () => {
    const joined = narrowClassConfig('Post', { fields: ['title'] }, { joinFields: ['title', 'secret'] });
    expect(joined.joinFields).toEqual(['title']);
  });

  it('cannot scope one class by two tenants', () => {
    const issues: PolicyIssue[] = [];
    const code = { className: 'Post', config: { tenantScope: { field: 'teamId' } } };
    withDeclaredClasses({ classes: { Post: { tenantScope: { field: 'orgId' } } } }, [code], issues);
    expect(issues.map(({ path }) => path)).toEqual(['policy.classes.Post.tenantScope']);
  });
});
