import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withholdUnreadable } from './embedded-rights.js';

const seen = (row: Record<string, unknown>) => withholdUnreadable(row, ['*', 'ada']);
const deep = (levels: number, core: unknown): Record<string, unknown> =>
  levels === 0 ? { core } : { inner: deep(levels - 1, core) };

describe('rows inside a row', () => {
  it.each<[string, unknown, unknown]>([
    ['stay when they have no rights of their own', { x: 1 }, { x: 1 }],
    ['stay when the caller may read them', { _rperm: ['ada'], x: 1 }, { _rperm: ['ada'], x: 1 }],
    ['stay when everyone may', { _rperm: ['*'] }, { _rperm: ['*'] }],
    ['become null when they leave the caller out', { _rperm: ['bob'], x: 1 }, null],
    ['become null when they are nobody’s', { _rperm: [] }, null],
    ['become null when their rights are no list', { _rperm: 'ada' }, null],
    ['become null when their rights are null', { _rperm: null }, null],
    ['are dropped from lists', [{ _rperm: ['bob'] }, { x: 1 }, 2], [{ x: 1 }, 2]],
    ['are looked for inside each other', { a: [{ b: { _rperm: ['bob'] } }] }, { a: [{ b: null }] }],
  ])('%s', (_, value, expected) => {
    expect(seen({ value })).toEqual({ value: expected });
  });

  it('tell the type of rights that are no list', () => {
    const types: string[] = [];
    const row = {
      a: { _rperm: 'ada' },
      b: [{ _rperm: null }, { _rperm: { ada: true } }],
      c: { _rperm: ['bob'] },
    };
    withholdUnreadable(row, ['ada'], (type) => types.push(type));
    expect(types).toEqual(['string', 'null', 'object']);
  });

  it('do not include the row itself', () => {
    expect(seen({ _rperm: ['bob'], x: 1 })).toEqual({ _rperm: ['bob'], x: 1 });
  });

  it('are not shown below 32 levels', () => {
    expect(JSON.stringify(seen(deep(20, 'core')))).toContain('core');
    expect(JSON.stringify(seen(deep(40, 'core')))).not.toContain('core"}');
    expect(JSON.stringify(seen(deep(40, 'core')))).toContain('null');
  });

  it('never show a value that stands under rights of somebody else', () => {
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.integer(),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b'), tie('value'), { maxKeys: 2 }),
        tie('value').map((inner) => ({ _rperm: ['bob'], secret: 'S3CRET', inner })),
      ),
    }));
    fc.assert(
      fc.property(value, (inside) => {
        expect(JSON.stringify(seen({ inside }))).not.toContain('S3CRET');
      }),
    );
  });
});
