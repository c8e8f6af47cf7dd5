import { describe, expect, it } from 'vitest';
import { ProcessRateLimiters } from '#core';
import { configOf, ConfigVersions } from '#config';
import { PARSE_ALONE } from '#data-mongo';
import { followDeclarations, storageDeclarationsOf } from './storage-declarations.js';

const loaded = (storage: string, policy: object) =>
  configOf({ database: { uri: 'mongodb://db/shop', storage }, policy: { ...policy } });
const declarationsOf = (storage: string, policy: object) =>
  storageDeclarationsOf(loaded(storage, policy).policy);

describe('the classes that a configuration declares', () => {
  it('are all of Parse and no other by default', () => {
    expect(declarationsOf('parse', {})).toBe(PARSE_ALONE);
  });

  it('are the listed ones where the policy refuses others', () => {
    const classes = { Post: {}, User: {} };
    expect(declarationsOf('parse', { unlistedClasses: 'refuse', classes })).toEqual({
      parse: new Set(['Post', '_User']),
      plain: [],
    });
  });

  it('are plain ones, and those of Parse that say so, in a plain database', () => {
    const classes = { Order: { collection: 'orders' }, Post: { storage: 'parse' } };
    expect(declarationsOf('plain', { classes })).toMatchObject({
      parse: new Set(['Post']),
      plain: [{ className: 'Order', collection: 'orders', properties: new Map() }],
    });
    expect(declarationsOf('plain', {})).toEqual({ parse: new Set(), plain: [] });
  });

  it('are read again once a new version of the configuration declares others, and only then', () => {
    const classes = { Order: { collection: 'orders' } };
    const versions = new ConfigVersions(loaded('plain', { classes }), new ProcessRateLimiters());
    let invalidated = 0;
    const catalogue = { invalidate: () => (invalidated += 1) };
    followDeclarations(versions, catalogue as never);
    versions.adopt(loaded('plain', { classes: { Order: { collection: 'orders', description: 'other' } } }));
    expect(invalidated).toBe(0);
    versions.adopt(loaded('plain', { classes: { Order: { collection: 'sales' } } }));
    expect(invalidated).toBe(1);
  });
});
