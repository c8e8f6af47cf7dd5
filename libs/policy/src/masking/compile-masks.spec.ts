import { describe, expect, it } from 'vitest';
import { compilePolicy } from '../compile/compile-policy.js';
import type { MasksConfig } from './compile-masks.js';

const KEY = 'a-secret-of-at-least-32-characters!!';
const listIssues = (masks: MasksConfig, maskingKey: string | null = KEY) =>
  compilePolicy({ maskingKey, classes: { Card: { masks } } }).issues.map(({ path }) => path);
const kinds = (masks: MasksConfig) =>
  [
    ...(compilePolicy({ maskingKey: KEY, classes: { Card: { masks } } }).policy.classes.get('Card')?.masks ??
      []),
  ].map(([path, { readonly, write, admin }]) => [path, readonly.kind, write.kind, admin.kind]);

describe('masks of a policy', () => {
  it('hold for every tier, and for a tier that is not named as for the one below it', () => {
    expect(kinds({ pin: 'drop', card_number: { readonly: 'deny', admin: 'none' } })).toEqual([
      ['pin', 'drop', 'drop', 'drop'],
      ['card_number', 'deny', 'deny', 'none'],
    ]);
  });

  it.each<[string, MasksConfig, string]>([
    ['stricter for a higher tier', { pin: { readonly: 'none', admin: 'mask' } }, 'pin.admin'],
    ['neither weaker nor the same', { pin: { readonly: 'hash', write: { mask: { keep: 2 } } } }, 'pin.write'],
    [
      'an ending that grows shorter upwards',
      { pin: { readonly: { mask: { keep: 4 } }, write: { mask: { keep: 2 } } } },
      'pin.write',
    ],
    ['an internal column', { sessionToken: 'mask' }, 'sessionToken'],
    ['a column of every row', { objectId: 'hash' }, 'objectId'],
  ])('are not %s', (_, masks, field) => {
    expect(listIssues(masks)).toEqual([`policy.classes.Card.masks.${field}`]);
  });

  it('need a key where any of them is a pseudonym, whichever tier gets it', () => {
    expect(listIssues({ pin: 'mask' }, null)).toEqual([]);
    expect(listIssues({ pin: { readonly: 'drop', admin: 'hash' } }, null)).toEqual([
      'policy.classes.Card.masks.pin',
    ]);
  });

  it('want to know what a vector stands for, where the class has one', () => {
    const masks: MasksConfig = { pin: 'mask' };
    const issues = (searchable: { field: string; textFields?: string[] }) =>
      compilePolicy({ classes: { Card: { masks, searchable } } }).issues.map(({ path }) => path);
    expect(issues({ field: 'vector' })).toEqual(['policy.classes.Card.searchable.textFields']);
    expect(issues({ field: 'vector', textFields: ['title'] })).toEqual([]);
  });

  it('change with the key, and show it nowhere', () => {
    const version = (maskingKey: string | null) => compilePolicy({ maskingKey, classes: {} }).policy.version;
    expect(new Set([version(KEY), version(null), version(`${KEY}2`), version(KEY)]).size).toBe(3);
    expect(JSON.stringify(compilePolicy({ maskingKey: KEY }).policy)).not.toContain(KEY);
  });
});
