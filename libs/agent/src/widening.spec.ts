import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MASTER_PRINCIPALS, principalsOf } from './principals.js';
import { subAgentWidens } from './refusals.js';
import { widening } from './widening.js';

const ada = principalsOf('ada', ['editors', 'readers']);

describe('the rights of a sub-agent', () => {
  it('may be any under the master key', () => {
    expect(widening(MASTER_PRINCIPALS, ada)).toBeNull();
    expect(widening(MASTER_PRINCIPALS, MASTER_PRINCIPALS)).toBeNull();
  });

  it('may be a part of its parent’s', () => {
    expect(widening(ada, ada)).toBeNull();
    expect(widening(ada, principalsOf(null, ['readers']))).toBeNull();
  });

  it('are never the master key under a parent that has not got it', () => {
    expect(widening(ada, MASTER_PRINCIPALS)).toMatchObject({ reason: 'child_master_key', extra: [] });
  });

  it('never hold a principal that the parent does not', () => {
    const principals = fc
      .record({ user: fc.constantFrom(null, 'ada', 'bob'), roles: fc.subarray(['a', 'b', 'c']) })
      .map(({ user, roles }) => principalsOf(user, roles));
    fc.assert(
      fc.property(principals, principals, (parent, child) => {
        const held = new Set(parent.strings);
        const extra = (child.strings ?? []).filter((name) => !held.has(name));
        const widened = widening(parent, child);
        expect(widened?.extra ?? []).toEqual(extra);
        expect(widened === null).toBe(extra.length === 0);
      }),
    );
  });

  it('are refused with counts, never with the names of users or roles', () => {
    const widened = widening(ada, principalsOf('bob', ['secretRole']));
    const refusal = widened && subAgentWidens(widened);
    expect(refusal).toMatchObject({ code: 'access_denied', gate: 'identity' });
    expect(refusal?.message).toContain('2 of them new');
    expect(JSON.stringify(refusal)).not.toMatch(/bob|ada|secretRole|editors/);
  });
});
