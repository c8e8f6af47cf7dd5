import { describe, expect, it } from 'vitest';
import { ProcessRateLimiters } from '#core';
import { readConfig, ConfigVersions } from '#config';
import { PARSE_ALONE } from '#data-mongo';
import { followDeclarations, storageDeclarationsOf } from './storage-declarations.js';

const loaded = (storage: string, policy: object) =>
  readConfig({ database: { uri: 'mongodb://db/shop', storage }, policy: { ...policy } });
const listDeclarations = (storage: string, policy: object) =>
  storageDeclarationsOf(loaded(storage, policy).policy);

describe('the classes that a configuration declares', () => {
  it('are none by default, and all of Parse where the policy allows those that it does not list', () => {
    expect(listDeclarations('parse', {})).toEqual({ parse: new Set(), plain: [] });
    expect(listDeclarations('parse', { unlistedClasses: 'allow' })).toBe(PARSE_ALONE);
  });

  it('are those of Parse as well whose collections a plain class names, which would read past their ACLs', () => {
    const classes = { Copy: { storage: 'plain', collection: 'Order' } };
    expect(listDeclarations('parse', { classes }).parse).toEqual(new Set(['Order']));
  });

  it('name those collections in every database of Parse', () => {
    const classes = { Copy: { database: 'second', storage: 'plain', collection: 'Order' }, Post: {} };
    const listFurther = (storage: string) =>
      storageDeclarationsOf(
        readConfig({
          databases: { first: { uri: 'mongodb://a/a' }, second: { uri: 'mongodb://b/b', storage } },
          policy: { classes },
        }).policy,
      ).further?.get('second');
    expect(listFurther('parse')).toEqual({ parse: new Set(), guarded: new Set(['Order']) });
    expect(listFurther('plain')).toEqual({ parse: new Set() });
  });

  it('are the listed ones where the policy refuses others', () => {
    const classes = { Post: {}, User: {} };
    expect(listDeclarations('parse', { unlistedClasses: 'refuse', classes })).toEqual({
      parse: new Set(['Post', '_User']),
      plain: [],
    });
  });

  it('are plain ones, and those of Parse that say so, in a plain database', () => {
    const classes = { Order: { collection: 'orders' }, Post: { storage: 'parse' } };
    expect(listDeclarations('plain', { classes })).toMatchObject({
      parse: new Set(['Post']),
      plain: [{ className: 'Order', collection: 'orders', properties: new Map() }],
    });
    expect(listDeclarations('plain', {})).toEqual({ parse: new Set(), plain: [] });
  });

  it('are read again once a new version of the configuration declares others, and only then', () => {
    const classes = { Order: { collection: 'orders' } };
    const versions = new ConfigVersions(loaded('plain', { classes }), new ProcessRateLimiters());
    let forgotten = 0;
    followDeclarations(versions, { forget: () => (forgotten += 1) });
    versions.adopt(loaded('plain', { classes: { Order: { collection: 'orders', description: 'other' } } }));
    expect(forgotten).toBe(0);
    versions.adopt(loaded('plain', { classes: { Order: { collection: 'sales' } } }));
    expect(forgotten).toBe(1);
  });
});
