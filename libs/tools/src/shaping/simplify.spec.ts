import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simplify, simplifyRow } from './presented-rows.js';

describe('simplification', () => {
  it.each([
    ['Date', { __type: 'Date', iso: '2024-01-01T00:00:00.000Z' }, '2024-01-01T00:00:00.000Z'],
    [
      'Pointer',
      { __type: 'Pointer', className: 'Post', objectId: 'p1' },
      { _type: 'Pointer', class: 'Post', id: 'p1' },
    ],
    [
      'File',
      { __type: 'File', name: 'a.png', url: 'http://f/a.png?sig=1' },
      { _type: 'File', name: 'a.png', url: 'http://f/a.png?sig=1' },
    ],
    [
      'GeoPoint',
      { __type: 'GeoPoint', latitude: 1, longitude: 2 },
      { _type: 'GeoPoint', latitude: 1, longitude: 2 },
    ],
    ['Polygon', { __type: 'Polygon', coordinates: [[0, 0]] }, { _type: 'Polygon', coordinates: [[0, 0]] }],
    ['Bytes', { __type: 'Bytes', base64: 'A'.repeat(80) }, { _type: 'Bytes', base64: 'A'.repeat(80) }],
    ['Relation', { __type: 'Relation', className: 'Tag' }, { _type: 'Relation', class: 'Tag' }],
    ['redacted row', { className: 'Secret', __redacted: true }, { className: 'Secret', __redacted: true }],
    ['scalar', 5, 5],
    ['null', null, null],
  ])('shortens a %s', (_, value, expected) => {
    expect(simplify({ deep: [value] })).toEqual({ deep: [expected] });
  });

  it('treats an included row as an ordinary object', () => {
    const author = {
      __type: 'Object',
      className: '_User',
      objectId: 'u1',
      ACL: {},
      born: { __type: 'Date', iso: 'x' },
    };
    expect(simplifyRow({ author })).toEqual({
      author: { __type: 'Object', className: '_User', objectId: 'u1', born: 'x' },
    });
  });

  it('does not trust a value that only claims a type', () => {
    const forged = { __type: 'Pointer', className: 'Post', objectId: { ACL: { secret: true }, id: 1 } };
    expect(simplify(forged)).toEqual({ __type: 'Pointer', className: 'Post', objectId: { id: 1 } });
  });

  it('never lets an ACL out, at any depth and inside any typed value', () => {
    const types = ['Pointer', 'Date', 'File', 'GeoPoint', 'Bytes', 'Polygon', 'Relation', 'Object'];
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string(),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(
          fc.constantFrom('ACL', '__type', 'className', 'objectId', 'iso', 'name', 'coordinates', 'title'),
          fc.oneof(tie('value'), fc.constantFrom(...types)),
          { maxKeys: 4 },
        ),
      ),
    })).value;
    const clean = (seen: unknown): boolean =>
      seen === null ||
      typeof seen !== 'object' ||
      (!Object.hasOwn(seen, 'ACL') && Object.values(seen).every(clean));
    fc.assert(
      fc.property(value, (input) => {
        expect(clean(simplify(input))).toBe(true);
      }),
    );
  });
});
