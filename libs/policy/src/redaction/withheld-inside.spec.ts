import { describe, expect, it } from 'vitest';
import type { ClassAccess } from '../model/class-access.js';
import { FieldNames } from '../model/field-names.js';
import { parseOrder } from '../where/order.js';
import { translateWhere } from '../where/translate-where.js';
import { leadsInside, noneWithheldOn, withPlaceholders } from './withheld-inside.js';

const CLASSES = ['Contract'];
const access: ClassAccess = {
  className: 'Desk',
  schema: undefined,
  names: new FieldNames(new Map()),
  readable: null,
  mayHold: { columns: new Set(['terms']), classes: CLASSES },
};
const reach = { reach: () => access };
const strict = { strictPointerShapes: true };
const none = { $nin: CLASSES };

describe('a path into a column that may hold objects of a withheld class', () => {
  it('is asked of no row in which one of them stands on the way', () => {
    expect(noneWithheldOn('terms.parts.of', access)).toEqual({
      'terms.className': none,
      'terms.parts.className': none,
    });
    expect(translateWhere({ terms: { ref: { objectId: { $gt: 'x' } } } }, access, reach, strict)).toEqual({
      'terms.ref.objectId': { $gt: 'x' },
      'terms.className': none,
      'terms.ref.className': none,
    });
  });

  it('is no matter where the column is another one, is meant whole, or the operator asks', () => {
    for (const path of ['terms', 'label.size']) expect(leadsInside(path, access)).toBe(false);
    expect(noneWithheldOn('terms', access)).toBeNull();
    const asked = { 'terms.ref.objectId': 'x' };
    expect(translateWhere(asked, access, reach, { ...strict, checkFields: false })).toEqual(asked);
  });

  it('sorts by no id', () => {
    expect(() => parseOrder('-terms.ref.objectId', access)).toThrow('order cannot use its ids');
    expect(parseOrder('terms.days', access)).toEqual([{ field: 'terms.days', descending: false }]);
  });

  it('costs a pipeline an expression that grows with the levels and not by their power', () => {
    const sizes = [1, 2, 3, 4].map(
      (depth) => JSON.stringify(withPlaceholders('$terms', CLASSES, depth)).length,
    );
    const steps = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0));
    expect(Math.max(...steps) - Math.min(...steps)).toBeLessThan(10);
  });
});
