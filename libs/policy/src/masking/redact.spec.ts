import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALL_TEXT, toListType, toObjectType, TEXT, type ValueType } from '../model/value-type.js';
import { holdsWithheld, redact, type Withholding, withholdUnreadable } from './redact.js';

/** As where no class is shown but `Open`. */
const viewer: Withholding = {
  isWithheld: (name) => name !== 'Open',
  hasClass: (name) => ['Secret', 'Open', '_Session'].includes(name),
  rowType: () => undefined,
};
const hide = (value: unknown, type?: ValueType) => redact(value, viewer, type);
const placeholder = { className: 'Secret', __redacted: true };

describe('redaction', () => {
  it.each([
    ['a pointer', { p: { __type: 'Pointer', className: 'Secret', objectId: 'x' } }, { p: placeholder }],
    ['an included object', { p: { __type: 'Object', className: 'Secret', pin: 1 } }, { p: placeholder }],
    ['a stored pointer', { _p_s: 'Secret$x' }, { _p_s: placeholder }],
    ['a stored pointer in an array', { a: ['Secret$x', 'Open$x'] }, { a: [placeholder, 'Open$x'] }],
    ['a stored pointer as a key', { counts: { Secret$x: 1, Open$x: 2 } }, { counts: { Open$x: 2 } }],
    ['a whole row', { className: 'Secret', pin: 1 }, placeholder],
  ])('replaces %s of a withheld class by a placeholder', (_, row, shown) => {
    expect(hide(row)).toEqual(shown);
  });

  it('drops internal columns and ACL maps at any depth, in every authentication mode', () => {
    expect(
      hide({ a: [{ b: { _hashed_password: 'h', _rperm: [], ACL: {}, _auth_data_x: {}, keep: 1 } }] }),
    ).toEqual({
      a: [{ b: { keep: 1 } }],
    });
  });

  it('takes no text for a pointer that names no class', () => {
    const row = { price: 'US$5', texts: ['Price$100 each', { deep: 'A$B' }], B$C: 1 };
    expect(hide(row)).toEqual(row);
    expect(holdsWithheld(row, viewer)).toBe(false);
  });

  it('takes no text in a column of texts for a pointer, and judges objects in it by what they are', () => {
    const row = toObjectType((name) =>
      name === 'text' ? TEXT : name === 'list' ? toListType(TEXT) : undefined,
    );
    const texts = { text: 'Secret$x', list: ['Secret$y'] };
    expect(hide(texts, row)).toEqual(texts);
    expect(holdsWithheld(texts, viewer, row)).toBe(false);
    const stored = { text: { of: 'Secret$x', p: { __type: 'Pointer', className: 'Secret', objectId: 'x' } } };
    expect(hide(stored, row)).toEqual({ text: { of: placeholder, p: placeholder } });
    expect(holdsWithheld(stored, viewer, row)).toBe(true);
    const plain = { a: { b: ['Secret$x'] } };
    expect(hide(plain, ALL_TEXT)).toEqual(plain);
  });

  it('leaves everything else as it is', () => {
    const row = { s: 'a$b', n: 1, d: null, o: { className: 'Open' }, price: '5$ each', l: [true] };
    expect(hide(row)).toEqual(row);
  });

  it('keeps a __proto__ member as data', () => {
    const shown = hide(JSON.parse('{"__proto__": {"x": 1}}')) as object;
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype);
    expect(JSON.stringify(shown)).toBe('{"__proto__":{"x":1}}');
  });

  it('never lets the text of a withheld row or an internal column through', () => {
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.constant('Secret$LEAK'),
        fc.record({ className: fc.constant('Secret'), pin: fc.constant('LEAK') }),
        fc.record({ _session_token: fc.constant('LEAK'), ok: fc.constant(1) }),
        fc.record({ _auth_data_github: fc.constant('LEAK') }),
        fc.dictionary(fc.constantFrom('a', 'Secret$LEAK', 'b'), tie('node'), { maxKeys: 3 }),
        fc.array(tie('node'), { maxLength: 3 }),
      ),
    })).node;
    fc.assert(
      fc.property(tree, (value) => {
        expect(JSON.stringify(hide(value))).not.toContain('LEAK');
      }),
    );
  });
});

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

  it('show the type of rights that are no list', () => {
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
