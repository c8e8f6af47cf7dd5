import { describe, expect, it } from 'vitest';
import { readKey } from './write-key.js';

const write = { operation: 'update', className: 'Order', objectId: 'o1', fields: { total: 5 } } as const;

describe('the digest of a keyed write', () => {
  it('is that of the same key and the same write', () => {
    expect(readKey('a', write)).toEqual(readKey('a', { ...write }));
    expect(readKey('a', write).digest).not.toBe(readKey('a', { ...write, fields: { total: 6 } }).digest);
  });

  it('differs for another key, so that values cannot be guessed from it', () => {
    expect(readKey('a', write).digest).not.toBe(readKey('b', write).digest);
  });
});
