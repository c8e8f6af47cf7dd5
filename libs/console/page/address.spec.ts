import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toAddress, readAddress } from './address.js';

describe('the address of a page', () => {
  it('names the page and its filters, without those that are empty', () => {
    expect(toAddress('audit', { agent: 'a b', tool: '', gate: undefined })).toBe('#/audit?agent=a+b');
    expect(toAddress('live')).toBe('#/live');
    expect(readAddress('').page).toBe('');
  });

  it('gives back every filter that was written into it', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1 }),
        fc.string({ unit: 'grapheme', minLength: 1 }),
        (agent, tool) => {
          const { page, filters } = readAddress(toAddress('audit', { agent, tool }));
          expect([page, filters.get('agent'), filters.get('tool')]).toEqual(['audit', agent, tool]);
        },
      ),
    );
  });
});
