import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileAgentDefinition } from './agent-definition.js';
import { Agent } from './agent.js';
import {
  impersonationLabel,
  MASTER,
  MASTER_PRINCIPALS,
  createPrincipals,
  sessionIdentity,
  findWidening,
} from './identity.js';
import { subAgentWidens } from './refusals/index.js';
import { deriveAgent } from './sub-agent.js';

describe('a label', () => {
  it.each<[unknown, string | null]>([
    ['  the desk ', 'the desk'],
    ['x'.repeat(128), 'x'.repeat(128)],
    ['x'.repeat(129), null],
    ['  ', null],
    [7, null],
    [null, null],
    [{ toString: () => 'x' }, null],
  ])('is trimmed text of at most 128 characters, or none: %j', (value, expected) => {
    expect(impersonationLabel(value)).toBe(expected);
  });
});

describe('who is impersonated', () => {
  const definition = compileAgentDefinition('x', { impersonationLabel: ' desk ' });
  const acting = new Agent({
    definition,
    principal: 'p',
    identity: sessionIdentity('t'),
    impersonatedUserId: 'u1',
  });

  it('is nobody unless it was said', () => {
    const plain = new Agent({ definition: compileAgentDefinition('x'), principal: 'p', identity: MASTER });
    expect([plain.impersonatedUserId, plain.impersonationLabel]).toEqual([null, null]);
  });

  it('holds for sub-agents that keep the identity, and for no others', () => {
    expect(deriveAgent(acting)).toMatchObject({ impersonatedUserId: 'u1', impersonationLabel: 'desk' });
    const other = deriveAgent(acting, { identity: { kind: 'aclUser', userId: 'u1' } });
    expect(other.impersonatedUserId).toBeNull();
  });
});

const ada = createPrincipals('ada', ['editors', 'readers']);

describe('the rights of a sub-agent', () => {
  it('may be any under the master key', () => {
    expect(findWidening(MASTER_PRINCIPALS, ada)).toBeNull();
    expect(findWidening(MASTER_PRINCIPALS, MASTER_PRINCIPALS)).toBeNull();
  });

  it('may be a part of its parent’s', () => {
    expect(findWidening(ada, ada)).toBeNull();
    expect(findWidening(ada, createPrincipals(null, ['readers']))).toBeNull();
  });

  it('are never the master key under a parent that has not got it', () => {
    expect(findWidening(ada, MASTER_PRINCIPALS)).toMatchObject({ reason: 'child_master_key', extra: [] });
  });

  it('never hold a principal that the parent does not', () => {
    const principals = fc
      .record({ user: fc.constantFrom(null, 'ada', 'bob'), roles: fc.subarray(['a', 'b', 'c']) })
      .map(({ user, roles }) => createPrincipals(user, roles));
    fc.assert(
      fc.property(principals, principals, (parent, child) => {
        const held = new Set(parent.strings);
        const extra = (child.strings ?? []).filter((name) => !held.has(name));
        const widened = findWidening(parent, child);
        expect(widened?.extra ?? []).toEqual(extra);
        expect(widened === null).toBe(extra.length === 0);
      }),
    );
  });

  it('are refused with counts, never with the names of users or roles', () => {
    const widened = findWidening(ada, createPrincipals('bob', ['secretRole']));
    const refusal = widened && subAgentWidens(widened);
    expect(refusal).toMatchObject({ code: 'access_denied', gate: 'identity' });
    expect(refusal?.message).toContain('2 of them new');
    expect(JSON.stringify(refusal)).not.toMatch(/bob|ada|secretRole|editors/);
  });
});
