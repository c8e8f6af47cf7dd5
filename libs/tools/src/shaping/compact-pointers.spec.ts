import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compactPointers } from './presented-rows.js';

describe('pointer compaction', () => {
  it('renames a column of one class and names the class once', () => {
    expect(compactPointers([{ _p_author: '_User$a' }, { _p_author: '_User$b', n: 1 }])).toEqual({
      rows: [{ author: 'a' }, { author: 'b', n: 1 }],
      pointerClasses: { author: '_User' },
    });
  });

  it('reaches nested objects and arrays', () => {
    expect(compactPointers([{ docs: [{ _p_tag: 'Tag$t' }], _id: { _p_tag: 'Tag$u' } }])).toEqual({
      rows: [{ docs: [{ tag: 't' }], _id: { tag: 'u' } }],
      pointerClasses: { tag: 'Tag' },
    });
  });

  it.each([
    ['no row has a pointer', {}],
    ['another row has one', { _p_on: 'Post$a' }],
  ])('names an empty and a withheld pointer by its field where %s', (_, other) => {
    const hidden = { className: 'Hidden', __redacted: true };
    const { rows } = compactPointers([{ _p_on: null }, { _p_on: hidden }, other]);
    expect(rows.slice(0, 2)).toEqual([{ on: null }, { on: hidden }]);
  });

  it.each([
    ['a column beside a field of its short name', [{ _p_on: 'Post$a', on: 1 }, { _p_on: 'Post$b' }]],
    ['a value that is no stored pointer', [{ _p_on: 'Post' }, { _p_on: 'Post$' }, { _p_on: 5 }]],
    ['a name that could not be a field', [{ _p_: 'Post$a', _p__rperm: 'Post$b', '_p_a.b': 'Post$c' }]],
    ['a column of two classes', [{ _p_on: 'Post$a' }, { _p_on: 'Song$b' }]],
  ])('leaves alone %s', (_, rows) => {
    expect(compactPointers(rows)).toEqual({ rows, pointerClasses: null });
  });

  it('leaves a malformed value under its storage name while the others are renamed', () => {
    expect(compactPointers([{ _p_on: 'Post$a' }, { _p_on: 'odd' }])).toEqual({
      rows: [{ on: 'a' }, { _p_on: 'odd' }],
      pointerClasses: { on: 'Post' },
    });
  });

  it('does not change the rows it was given', () => {
    const rows = [{ _p_on: 'Post$a' }];
    compactPointers(rows);
    expect(rows).toEqual([{ _p_on: 'Post$a' }]);
  });

  it('never makes an underscored name that was not there, never loses a member, never invents a value', () => {
    const names = fc.constantFrom('a', '_p_a', '_p_b', '_p__hashed_password', '_p___proto__', '_id');
    const value = fc.constantFrom('Post$1', 'Song$2', 'plain', null);
    const rows = fc.array(fc.dictionary(names, value, { maxKeys: 4 }), { maxLength: 4 });
    fc.assert(
      fc.property(rows, (before) => {
        for (const [index, row] of compactPointers(before).rows.entries()) {
          const original = before[index] as Record<string, unknown>;
          const changed = Object.entries(row).filter(([key]) => !Object.hasOwn(original, key));
          expect(Object.keys(row)).toHaveLength(Object.keys(original).length);
          expect(row).toMatchObject(
            Object.fromEntries(Object.entries(original).filter(([key]) => key in row)),
          );
          for (const [key, id] of changed) {
            expect(key).toMatch(/^[a-z]/);
            const stored = original[`_p_${key}`];
            if (typeof id !== 'string') expect(stored).toBeNull();
            else expect(stored).toMatch(new RegExp(`^(Post|Song)\\$${id}$`));
          }
        }
      }),
    );
  });
});
