import { describe, expect, it } from 'vitest';
import { refusals } from '#core';
import type { ClassAccess, WithheldObjects } from '../model/class-access.js';
import { FieldNames } from '../model/field-names.js';
import { catchRefusal } from '../music.fixture.js';
import { parseOrder } from '../where/requested-fields.js';
import { translateWhere } from '../where/translate-where.js';
import {
  inexactColumns,
  mayHoldWithheld,
  noneWithheldOn,
  withheldClassIn,
  withheldNames,
  withPlaceholders,
} from './withheld-objects.js';

const names = withheldNames(['Contract', 'Desk', '_User'], (name) => name !== 'Desk', false);
const over = (mayHold: WithheldObjects): ClassAccess => ({
  className: 'Desk',
  schema: undefined,
  names: new FieldNames(new Map()),
  readable: null,
  mayHold,
});
const access = over({ columns: new Set(['terms']), names });
const reach = {
  reach: (className: string) => (className === 'Desk' ? access : refusals.hiddenClass(className)),
};
const strict = { strictPointerShapes: true };
const translate = (where: unknown) => translateWhere(where, access, reach, strict);

describe('a path into a column that may hold objects of a withheld class', () => {
  it('is asked of no row in which one of them stands on the way, in either form', () => {
    const stored = { $regex: '^(?:Contract|User|_User)\\$[\\s\\S]' };
    const besides = {
      $nor: [
        { 'terms.className': { $in: ['Contract', 'User', '_User'] } },
        { terms: stored },
        { 'terms.parts.className': { $in: ['Contract', 'User', '_User'] } },
        { 'terms.parts': stored },
      ],
    };
    expect(noneWithheldOn('terms.parts.of', access)).toEqual(besides);
    expect(translate({ terms: { parts: { of: { $gt: 3 } } } })).toEqual({
      'terms.parts.of': { $gt: 3 },
      ...besides,
    });
  });

  it('is no matter where the column is another one, is meant whole, or the operator asks', () => {
    expect(mayHoldWithheld('label.size', access)).toBe(false);
    expect(noneWithheldOn('terms', access)).toBeNull();
    expect(translate({ terms: { $in: ['x', 3, { days: 1 }] } })).toEqual({
      terms: { $in: ['x', 3, { days: 1 }] },
    });
    const asked = { 'terms.ref.objectId': 'x' };
    expect(translateWhere(asked, access, reach, { ...strict, checkFields: false })).toEqual(asked);
  });

  it.each([
    ['a pointer', { __type: 'Pointer', className: 'Contract', objectId: 'c1' }],
    ['an object', { className: 'Contract', objectId: 'c1' }],
    ['a stored pointer', 'Contract$c1'],
    ['a class without its underscore', 'User$u1'],
    ['one inside a list', ['x', { of: 'Contract$c1' }]],
  ])('is compared with no guess: %s', (_, guess) => {
    const forms = [guess, { $in: [guess] }, { $all: [guess] }, { $nin: [1, guess] }];
    for (const form of forms)
      expect(catchRefusal(() => translate({ terms: form }))?.code).toBe('access_denied');
  });

  it('is looked into by a pattern or a range only where nothing withheld stands', () => {
    for (const form of [{ $regex: '^C' }, { $gt: 'C' }]) {
      const where = translate({ terms: form });
      expect(where['terms']).toEqual(form);
      expect(where['$nor']).toHaveLength(2);
    }
    const range = { $gt: { __type: 'Pointer', className: 'Desk', objectId: 'd1' } };
    expect(catchRefusal(() => translate({ terms: range }))?.message).toContain('compare its members');
  });

  it('sorts by nothing, since rows are sorted as they are stored', () => {
    for (const order of ['-terms.ref.objectId', 'terms.days', 'terms'])
      expect(() => parseOrder(order, access)).toThrow('order cannot use it; aggregate can');
  });

  it('is filtered as stored only where that cannot be distinguished from what is seen', () => {
    const inexact = (match: object) => [...inexactColumns(match, access)];
    for (const exact of [3, 'x', { $in: ['x'] }, { $gt: 3 }, { $exists: false }, { $not: { $size: 2 } }])
      expect(inexact({ $or: [{ 'terms.a': exact }] })).toEqual([]);
    for (const other of [{ $gt: 'x' }, { $regex: 'x' }, { $type: 'string' }, { $not: { $lt: { a: 1 } } }])
      expect(inexact({ $or: [{ terms: other }] })).toEqual(['terms']);
    expect(inexact({ $and: [{ 'terms.a.b': 3 }, noneWithheldOn('terms.a.b', access)] })).toEqual([]);
  });

  it('costs a pipeline an expression that grows with the levels and not by their power', () => {
    const sizes = [1, 2, 3, 4].map(
      (depth) => JSON.stringify(withPlaceholders('$terms', names, depth)).length,
    );
    const steps = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0));
    expect(Math.max(...steps) - Math.min(...steps)).toBeLessThan(10);
  });
});

describe('the classes withheld from an agent', () => {
  it('are every class but those it may know, where its filter names these', () => {
    const others = withheldNames(['Contract', 'Desk'], (name) => name !== 'Desk', true);
    expect(others).toEqual({ kind: 'allBut', classes: ['Desk'], inTexts: ['Contract'] });
    expect(withheldClassIn({ className: 'Nobody' }, others)).toBe('Nobody');
    expect(withheldClassIn('Contract$c1', others)).toBe('Contract');
    // A text names no class that there is not.
    expect(withheldClassIn('Nobody$n1', others)).toBeNull();
    expect(withheldClassIn(['Desk$d1', { className: 'Desk' }], others)).toBeNull();
    expect(withheldClassIn('Nobody$n1', names)).toBeNull();
  });
});
