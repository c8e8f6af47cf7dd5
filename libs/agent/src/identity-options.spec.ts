import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Agent } from './agent.js';
import { compileAgentShape } from './agent-shape.js';
import { MASTER, sessionIdentity } from './identity.js';
import { type IdentityOptions, impersonationLabel, readIdentityOptions } from './identity-options.js';
import { deriveAgent } from './sub-agent.js';

const pointer = (className: string, objectId: string) => ({ __type: 'Pointer', className, objectId });

describe('the identity of an agent', () => {
  it.each<[IdentityOptions, unknown]>([
    [{}, null],
    [{ sessionToken: '', aclUser: null }, null],
    [{ aclUser: 'u1' }, { kind: 'aclUser', userId: 'u1' }],
    [{ aclUser: pointer('_User', 'u1') }, { kind: 'aclUser', userId: 'u1' }],
    [{ aclUser: pointer('User', 'u1') }, { kind: 'aclUser', userId: 'u1' }],
    [{ aclRole: 'role:editors' }, { kind: 'aclRole', role: 'editors' }],
    [{ aclRole: { className: '_Role', name: 'editors' } }, { kind: 'aclRole', role: 'editors' }],
    [
      { sessionToken: '', aclRole: 'editors' },
      { kind: 'aclRole', role: 'editors' },
    ],
    [{ impersonateUser: 'u1' }, { kind: 'impersonate', userId: 'u1', mint: false }],
    [
      { impersonationUser: pointer('_User', 'u1'), impersonationMint: true },
      { kind: 'impersonate', userId: 'u1', mint: true },
    ],
    [
      { impersonateUser: 'u1', impersonateMint: true },
      { kind: 'impersonate', userId: 'u1', mint: true },
    ],
  ])('is read from %j', (options, expected) => {
    expect(readIdentityOptions(options).identity).toEqual(expected);
  });

  it('is one of four: any two are refused, by name', () => {
    const one = { sessionToken: 't', aclUser: 'u', aclRole: 'r', impersonateUser: 'u' };
    const names = Object.keys(one) as (keyof typeof one)[];
    fc.assert(
      fc.property(fc.subarray(names, { minLength: 2 }), (given) => {
        const options = Object.fromEntries(given.map((name) => [name, one[name]]));
        expect(() => readIdentityOptions(options)).toThrow(`${given.join(', ')} are mutually exclusive`);
      }),
    );
    expect(() => readIdentityOptions({ aclRole: 'r', impersonationUser: 'u' })).toThrow(/mutually exclusive/);
  });

  it.each<[IdentityOptions, RegExp]>([
    [{ aclUser: pointer('Post', 'u1') }, /aclUser/],
    [{ impersonateUser: pointer('Post', 'u1') }, /impersonateUser/],
    [{ impersonateUser: 'role:admins' }, /impersonateUser/],
    [{ aclUser: { objectId: 'u1' } }, /aclUser/],
    [{ aclRole: 'role:' }, /aclRole/],
    [{ aclRole: { className: 'Post', name: 'x' } }, /aclRole/],
    [{ aclUser: 'u1', impersonateMint: true }, /impersonateMint/],
  ])('is refused from %j', (options, message) => {
    expect(() => readIdentityOptions(options)).toThrow(message);
  });
});

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

  it.each<IdentityOptions>([
    { impersonateUser: 'u', impersonationLabel: 'a' },
    { aclRole: 'r', impersonateLabel: 'a' },
  ])('goes with any identity, in either spelling: %j', (options) => {
    expect(readIdentityOptions(options).label).toBe('a');
  });
});

describe('who is impersonated', () => {
  const shape = compileAgentShape('x', { impersonationLabel: ' desk ' });
  const acting = new Agent({
    shape,
    principal: 'p',
    identity: sessionIdentity('t'),
    impersonatedUserId: 'u1',
  });

  it('is nobody unless it was said', () => {
    const plain = new Agent({ shape: compileAgentShape('x'), principal: 'p', identity: MASTER });
    expect([plain.impersonatedUserId, plain.impersonationLabel]).toEqual([null, null]);
  });

  it('holds for sub-agents that keep the identity, and for no others', () => {
    expect(deriveAgent(acting)).toMatchObject({ impersonatedUserId: 'u1', impersonationLabel: 'desk' });
    const other = deriveAgent(acting, { identity: { kind: 'aclUser', userId: 'u1' } });
    expect(other.impersonatedUserId).toBeNull();
  });
});
