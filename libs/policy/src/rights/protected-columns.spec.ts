import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MASTER_PRINCIPALS, principalsOf } from '#agent';
import { isReadableProtection, protectedColumns } from './protected-columns.js';

const ada = principalsOf('ada', ['editors']);
const editors = principalsOf(null, ['editors']);
const everyone = principalsOf(null, []);
const pointerTo = (objectId: string, className = '_User') => ({ __type: 'Pointer', className, objectId });

const hidden = (
  protectedFields: Record<string, readonly string[]> | undefined,
  principals: typeof ada,
  className = 'Note',
) =>
  [
    ...(protectedColumns(className, protectedFields ? { protectedFields } : null, principals)?.hidden ?? []),
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
    expect(hidden(declared, principals)).toEqual(expected);
  });

  it('hide the address of users, as Parse Server does without being told', () => {
    expect(hidden(undefined, everyone, '_User')).toEqual(['email']);
    expect(hidden({ '*': ['phone'] }, everyone, '_User')).toEqual(['email', 'phone']);
    expect(hidden({ ada: [] }, ada, '_User')).toEqual([]);
  });

  it('are shown to users in their own row, and in no other', () => {
    const columns = protectedColumns('_User', { protectedFields: { '*': ['phone'] } }, ada);
    expect([...(columns?.hiddenOn({ objectId: 'ada' }) ?? [])]).toEqual([]);
    expect([...(columns?.hiddenOn({ objectId: 'bob' }) ?? [])].sort()).toEqual(['email', 'phone']);
    const role = protectedColumns('_User', null, editors);
    expect([...(role?.hiddenOn({ objectId: 'ada' }) ?? [])]).toEqual(['email']);
  });

  describe('of rows that point at the caller', () => {
    const declared = {
      protectedFields: { '*': ['a', 'b', 'c'], 'userField:owner': ['a'], 'userField:team': ['a', 'b'] },
    };
    const columns = protectedColumns('Note', declared, ada);

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
      expect([...(columns?.hiddenOn(row) ?? [])].sort()).toEqual(expected);
    });

    it('keeps every column that some row may show out of queries', () => {
      expect([...(columns?.hidden ?? [])]).toEqual(['a', 'b', 'c']);
      const alone = protectedColumns('Note', { protectedFields: { 'userField:owner': ['a'] } }, ada);
      expect([...(alone?.hidden ?? [])]).toEqual(['a']);
      expect([...(alone?.hiddenOn({ owner: pointerTo('ada') }) ?? [])]).toEqual(['a']);
      expect([...(alone?.hiddenOn({ owner: pointerTo('bob') }) ?? [])]).toEqual([]);
    });

    it('says which columns the decision reads', () => {
      expect(columns).toMatchObject({ perRow: true, deciders: ['owner', 'team'] });
      expect(protectedColumns('Note', declared, editors)).toMatchObject({ perRow: false, deciders: [] });
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
        const columns = protectedColumns('Note', { protectedFields }, ada);
        for (const name of columns?.hiddenOn(value) ?? []) expect(columns?.hidden.has(name)).toBe(true);
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
