import { describe, expect, it } from 'vitest';
import type { StoredEntry } from '#data';
import { findOrigins } from './set-undo.js';

const entryOf = (objectId: string, keyNames: readonly string[]): StoredEntry => ({
  entry: 1,
  operation: 'update',
  className: 'Order',
  objectId,
  fields: [],
  keyNames,
});

describe('The keys of the rows that an undo takes back', () => {
  it('are those of every entry of the row', () => {
    const origins = findOrigins([
      entryOf('a', ['ci']),
      entryOf('b', ['ops']),
      entryOf('a', ['laptop', 'ci']),
    ]);
    expect(origins({ className: 'Order', objectId: 'a' })).toEqual(['ci', 'laptop']);
    expect(origins({ className: 'Order', objectId: 'b' })).toEqual(['ops']);
    expect(origins({ className: 'Bill', objectId: 'a' })).toEqual([]);
  });

  it('are found with one look at each entry, however many rows there are', () => {
    let looks = 0;
    const entries = Array.from({ length: 200 }, (_, at) =>
      Object.defineProperty(entryOf('', ['ci']), 'objectId', {
        get: () => {
          looks += 1;
          return `o${at}`;
        },
      }),
    );
    const origins = findOrigins(entries);
    for (let at = 0; at < 200; at += 1)
      expect(origins({ className: 'Order', objectId: `o${at}` })).toEqual(['ci']);
    expect(looks).toBe(200);
  });
});
