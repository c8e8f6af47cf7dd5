import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MASTER_PRINCIPALS, createPrincipals } from '#core';
import {
  isReadableProtection,
  operationVerdict,
  type PermissionVerdict,
  findProtectedColumns,
} from './class-permissions.js';

const ada = createPrincipals('ada', ['editors']);
const bob = createPrincipals('bob', []);
const editors = createPrincipals(null, ['editors']);
const everyone = createPrincipals(null, []);

const allowed = (via: string, pointerFields?: readonly string[]) => ({
  outcome: 'allowed',
  via,
  ...(pointerFields && { pointerFields }),
});
const deny = (reason: string) => ({ outcome: 'denied', reason });

describe('class-level permissions', () => {
  it.each<[string, Record<string, unknown> | null | undefined, typeof ada, object]>([
    ['are open where none were ever set', null, everyone, allowed('public_default')],
    ['are closed where they are not known', undefined, ada, deny('clp_unresolvable')],
    ['are not asked of the master key', undefined, MASTER_PRINCIPALS, allowed('master')],
    ['leave open what they do not speak of', { get: {} }, everyone, allowed('public_default')],
    ['close an operation that names nobody', { find: {} }, ada, deny('clp_denied')],
    ['open to everyone', { find: { '*': true } }, everyone, allowed('public')],
    ['open to a user by id', { find: { ada: true } }, ada, allowed('user')],
    ['open to a member of a role', { find: { 'role:editors': true } }, ada, allowed('role')],
    ['open to the role itself', { find: { 'role:editors': true } }, editors, allowed('role')],
    ['stay closed to others', { find: { ada: true, 'role:editors': true } }, bob, deny('clp_denied')],
    ['grant with true alone', { find: { '*': 1, bob: 'true' } }, bob, deny('clp_denied')],
    ['grant nobody a right of the prototype', { find: { toString: true } }, bob, deny('clp_denied')],
    ['ask for a login', { find: { requiresAuthentication: true } }, bob, allowed('authenticated')],
    [
      'see no login in a role',
      { find: { requiresAuthentication: true } },
      editors,
      deny('authentication_required'),
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
      deny('concrete_user_required'),
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
    ['do not read writeUserFields', { find: {}, writeUserFields: ['owner'] }, bob, deny('clp_denied')],
    ['are closed where a rule is no object', { find: true }, ada, deny('malformed_clp')],
    ['are closed where a rule is null', { find: null }, ada, deny('malformed_clp')],
    [
      'are closed where pointer fields are no list',
      { find: { pointerFields: 'owner' } },
      ada,
      deny('malformed_clp'),
    ],
    [
      'are closed where pointer fields name no fields',
      { find: {}, readUserFields: [{ $ne: 1 }] },
      ada,
      deny('malformed_clp'),
    ],
  ])('%s', (_, permissions, principals, verdict) => {
    expect(operationVerdict(permissions, 'find', principals)).toEqual(verdict);
  });

  it('do not take a user called like a condition for one', () => {
    const odd = createPrincipals('requiresAuthentication', []);
    const permissions = { find: { requiresAuthentication: true, pointerFields: ['owner'] } };
    expect(operationVerdict(permissions, 'find', odd)).toMatchObject({ via: 'pointer' });
  });

  it('let writeUserFields limit changes, and never open a class to new rows', () => {
    const permissions = { update: {}, create: {}, writeUserFields: ['owner'] };
    expect(operationVerdict(permissions, 'update', bob)).toEqual(allowed('pointer', ['owner']));
    expect(operationVerdict(permissions, 'create', bob)).toEqual(deny('clp_denied'));
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
        const more = operationVerdict(permissions, 'find', createPrincipals('ada', roles));
        const fewer = operationVerdict(permissions, 'find', createPrincipals(null, roles));
        const fewest = operationVerdict(permissions, 'find', createPrincipals(null, []));
        expect(rank(fewer)).toBeLessThanOrEqual(rank(more));
        expect(rank(fewest)).toBeLessThanOrEqual(rank(fewer));
      }),
    );
  });
});

const pointerTo = (objectId: string, className = '_User') => ({ __type: 'Pointer', className, objectId });

const refuseHidden = (
  protectedFields: Record<string, readonly string[]> | undefined,
  principals: typeof ada,
  className = 'Note',
) =>
  [
    ...(findProtectedColumns(className, protectedFields ? { protectedFields } : null, principals)?.hidden ??
      []),
  ].sort();

describe('protected fields', () => {
  it.each<[string, Record<string, readonly string[]> | undefined, typeof ada, string[]]>([
    ['hide nothing where none are declared', undefined, ada, []],
    ['are not asked of the master key', { '*': ['a'] }, MASTER_PRINCIPALS, []],
    ['hide the list for everyone', { '*': ['a', 'b'] }, everyone, ['a', 'b']],
    ['hide nothing from somebody no list speaks of', { bob: ['a'], 'role:x': ['b'] }, ada, []],
    ['show a user what its own list leaves out', { '*': ['a', 'b'], ada: ['b'] }, ada, ['b']],
    ['show everything to whom an empty list applies', { '*': ['a', 'b'], 'role:editors': [] }, ada, []],
    ['show a role what its list leaves out', { '*': ['a', 'b'], 'role:editors': ['a'] }, editors, ['a']],
    [
      'show signed-in users what their list leaves out',
      { '*': ['a', 'b'], authenticated: ['a'] },
      ada,
      ['a'],
    ],
    ['see no signed-in user in a role', { '*': ['a'], authenticated: [] }, editors, ['a']],
    [
      'hide what every list that applies names',
      { '*': ['a', 'b', 'c'], authenticated: ['b', 'c'], 'role:editors': ['c', 'a'], ada: ['c'], bob: [] },
      ada,
      ['c'],
    ],
    ['protect the whole column of a path', { '*': ['meta.inner'] }, ada, ['meta']],
  ])('%s', (_, declared, principals, expected) => {
    expect(refuseHidden(declared, principals)).toEqual(expected);
  });

  it('hide the address of users, as Parse Server does without a rule', () => {
    expect(refuseHidden(undefined, everyone, '_User')).toEqual(['email']);
    expect(refuseHidden({ '*': ['phone'] }, everyone, '_User')).toEqual(['email', 'phone']);
    expect(refuseHidden({ ada: [] }, ada, '_User')).toEqual([]);
  });

  it('are shown to users in their own row, and in no other', () => {
    const columns = findProtectedColumns('_User', { protectedFields: { '*': ['phone'] } }, ada);
    expect([...(columns?.listHidden({ objectId: 'ada' }) ?? [])]).toEqual([]);
    expect([...(columns?.listHidden({ objectId: 'bob' }) ?? [])].sort()).toEqual(['email', 'phone']);
    const role = findProtectedColumns('_User', null, editors);
    expect([...(role?.listHidden({ objectId: 'ada' }) ?? [])]).toEqual(['email']);
  });

  describe('of rows that point at the caller', () => {
    const declared = {
      protectedFields: { '*': ['a', 'b', 'c'], 'userField:owner': ['a'], 'userField:team': ['a', 'b'] },
    };
    const columns = findProtectedColumns('Note', declared, ada);

    it.each<[string, Record<string, unknown>, string[]]>([
      ['a row of nobody', {}, ['a', 'b', 'c']],
      ['a row of somebody else', { owner: pointerTo('bob') }, ['a', 'b', 'c']],
      ['its own row', { owner: pointerTo('ada') }, ['a']],
      ['a row that lists it', { team: [pointerTo('bob'), pointerTo('ada')] }, ['a', 'b']],
      ['a row both rules speak of', { owner: pointerTo('ada'), team: [pointerTo('ada')] }, ['a']],
      ['an included owner', { owner: { __type: 'Object', className: '_User', objectId: 'ada' } }, ['a']],
      ['a pointer into another class', { owner: pointerTo('ada', 'Note') }, ['a', 'b', 'c']],
      [
        'an object that only looks like a pointer',
        { owner: { className: '_User', objectId: 'ada' } },
        ['a', 'b', 'c'],
      ],
      ['the bare id', { owner: 'ada' }, ['a', 'b', 'c']],
      ['a list inside a list', { team: [[pointerTo('ada')]] }, ['a', 'b', 'c']],
    ])('decides by %s', (_, row, expected) => {
      expect([...(columns?.listHidden(row) ?? [])].sort()).toEqual(expected);
    });

    it('keeps every column that some row may show out of queries', () => {
      expect([...(columns?.hidden ?? [])]).toEqual(['a', 'b', 'c']);
      const alone = findProtectedColumns('Note', { protectedFields: { 'userField:owner': ['a'] } }, ada);
      expect([...(alone?.hidden ?? [])]).toEqual(['a']);
      expect([...(alone?.listHidden({ owner: pointerTo('ada') }) ?? [])]).toEqual(['a']);
      expect([...(alone?.listHidden({ owner: pointerTo('bob') }) ?? [])]).toEqual([]);
    });

    it('says which columns the decision reads', () => {
      expect(columns).toMatchObject({ perRow: true, deciders: ['owner', 'team'] });
      expect(findProtectedColumns('Note', declared, editors)).toMatchObject({ perRow: false, deciders: [] });
    });
  });

  it('never hide on a row what queries may name', () => {
    const list = fc.subarray(['a', 'b', 'c']);
    const entities = fc.dictionary(
      fc.constantFrom('*', 'authenticated', 'ada', 'role:editors', 'userField:owner', 'userField:team'),
      list,
    );
    const row = fc.record({ owner: fc.constantFrom(pointerTo('ada'), pointerTo('bob'), null) });
    fc.assert(
      fc.property(entities, row, (protectedFields, value) => {
        const columns = findProtectedColumns('Note', { protectedFields }, ada);
        for (const name of columns?.listHidden(value) ?? []) expect(columns?.hidden.has(name)).toBe(true);
      }),
    );
  });

  it.each([
    [{ protectedFields: ['a'] }],
    [{ protectedFields: { '*': 'a' } }],
    [{ protectedFields: { '*': [1] } }],
  ])('cannot be read from %j', (permissions) => {
    expect(isReadableProtection(permissions)).toBe(false);
  });
});
