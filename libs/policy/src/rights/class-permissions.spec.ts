import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MASTER_PRINCIPALS, principalsOf } from '#agent';
import { judgeOperation, type PermissionVerdict } from './class-permissions.js';

const ada = principalsOf('ada', ['editors']);
const bob = principalsOf('bob', []);
const editors = principalsOf(null, ['editors']);
const everyone = principalsOf(null, []);

const allowed = (via: string, pointerFields?: readonly string[]) => ({
  outcome: 'allowed',
  via,
  ...(pointerFields && { pointerFields }),
});
const denied = (reason: string) => ({ outcome: 'denied', reason });

describe('class-level permissions', () => {
  it.each<[string, Record<string, unknown> | null | undefined, typeof ada, object]>([
    ['are open where none were ever set', null, everyone, allowed('public_default')],
    ['are closed where they are not known', undefined, ada, denied('clp_unresolvable')],
    ['are not asked of the master key', undefined, MASTER_PRINCIPALS, allowed('master')],
    ['leave open what they do not speak of', { get: {} }, everyone, allowed('public_default')],
    ['close an operation that names nobody', { find: {} }, ada, denied('clp_denied')],
    ['open to everyone', { find: { '*': true } }, everyone, allowed('public')],
    ['open to a user by id', { find: { ada: true } }, ada, allowed('user')],
    ['open to a member of a role', { find: { 'role:editors': true } }, ada, allowed('role')],
    ['open to the role itself', { find: { 'role:editors': true } }, editors, allowed('role')],
    ['stay closed to others', { find: { ada: true, 'role:editors': true } }, bob, denied('clp_denied')],
    ['grant with true alone', { find: { '*': 1, bob: 'true' } }, bob, denied('clp_denied')],
    ['grant nobody a right of the prototype', { find: { toString: true } }, bob, denied('clp_denied')],
    ['ask for a login', { find: { requiresAuthentication: true } }, bob, allowed('authenticated')],
    [
      'see no login in a role',
      { find: { requiresAuthentication: true } },
      editors,
      denied('authentication_required'),
    ],
    [
      'limit rows to those that point at the user',
      { find: { pointerFields: ['owner'] } },
      bob,
      allowed('pointer', ['owner']),
    ],
    [
      'refuse somebody who could own nothing',
      { find: { pointerFields: ['owner'] } },
      editors,
      denied('concrete_user_required'),
    ],
    [
      'limit rows of a signed-in user too',
      { find: { requiresAuthentication: true, pointerFields: ['owner'] } },
      bob,
      allowed('pointer', ['owner']),
    ],
    [
      'do not limit rows of somebody granted by role',
      { find: { 'role:editors': true, pointerFields: ['owner'] } },
      ada,
      allowed('role'),
    ],
    [
      'read readUserFields as pointer fields of every reading',
      { find: {}, readUserFields: ['owner'] },
      bob,
      allowed('pointer', ['owner']),
    ],
    [
      'add readUserFields to the pointer fields, once each',
      { find: { pointerFields: ['members', 'owner'] }, readUserFields: ['owner'] },
      bob,
      allowed('pointer', ['members', 'owner']),
    ],
    ['do not read writeUserFields', { find: {}, writeUserFields: ['owner'] }, bob, denied('clp_denied')],
    ['are closed where a rule is no object', { find: true }, ada, denied('malformed_clp')],
    ['are closed where a rule is null', { find: null }, ada, denied('malformed_clp')],
    [
      'are closed where pointer fields are no list',
      { find: { pointerFields: 'owner' } },
      ada,
      denied('malformed_clp'),
    ],
    [
      'are closed where pointer fields name no fields',
      { find: {}, readUserFields: [{ $ne: 1 }] },
      ada,
      denied('malformed_clp'),
    ],
  ])('%s', (_, permissions, principals, verdict) => {
    expect(judgeOperation(permissions, 'find', principals)).toEqual(verdict);
  });

  it('do not take a user called like a condition for one', () => {
    const odd = principalsOf('requiresAuthentication', []);
    const permissions = { find: { requiresAuthentication: true, pointerFields: ['owner'] } };
    expect(judgeOperation(permissions, 'find', odd)).toMatchObject({ via: 'pointer' });
  });

  it('let writeUserFields limit changes, and never open a class to new rows', () => {
    const permissions = { update: {}, create: {}, writeUserFields: ['owner'] };
    expect(judgeOperation(permissions, 'update', bob)).toEqual(allowed('pointer', ['owner']));
    expect(judgeOperation(permissions, 'create', bob)).toEqual(denied('clp_denied'));
  });

  const names = fc.constantFrom('*', 'ada', 'bob', 'role:editors', 'role:others');
  const rule = fc.record(
    {
      grants: fc.uniqueArray(names),
      requiresAuthentication: fc.boolean(),
      pointerFields: fc.subarray(['owner', 'members']),
    },
    { requiredKeys: ['grants'] },
  );

  it('never show a caller with fewer principals more', () => {
    const rank = (verdict: PermissionVerdict): number =>
      verdict.outcome === 'denied' ? 0 : verdict.via === 'pointer' ? 1 : 2;
    fc.assert(
      fc.property(rule, fc.subarray(['editors', 'others']), ({ grants, ...conditions }, roles) => {
        const permissions = {
          find: { ...Object.fromEntries(grants.map((name) => [name, true])), ...conditions },
        };
        const more = judgeOperation(permissions, 'find', principalsOf('ada', roles));
        const fewer = judgeOperation(permissions, 'find', principalsOf(null, roles));
        const fewest = judgeOperation(permissions, 'find', principalsOf(null, []));
        expect(rank(fewer)).toBeLessThanOrEqual(rank(more));
        expect(rank(fewest)).toBeLessThanOrEqual(rank(fewer));
      }),
    );
  });
});
